// Package agent owns the loop over a model and its tools: first messages, calls, outputs and the
// end. It does not know repositories, GitHub or files. It reports to a transcript and ends with an
// Ending or an outcome.Stop.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// Conversation is one working agent. Not safe for concurrent use.
type Conversation struct {
	// Name is the agent's name; empty for the run's own agent.
	Name     string
	Model    model.Responder
	Tools    *tools.Dispatcher
	Log      *transcript.Log
	Settings model.Settings
	Limits   Limits
	// Window is the limit of a request and its answer, in tokens; 0 if unknown.
	Window int64
	// Fallbacks replace a failing model, in order.
	Fallbacks []Speaker
	// Written parses the text of a model without tools; nil otherwise.
	Written Writing
	// Plan returns the agent's plan in words, kept by every compaction. It may be nil.
	Plan func() string
	// Kept returns texts kept word for word by every compaction. It may be nil.
	Kept func() []string
	// Halt says why the run can't go on, after the calls of each answer; nil while it can.
	// It may be nil.
	Halt func() error
	// Compacting is asked before the conversation is made shorter; its error ends the run.
	// It may be nil.
	Compacting func(ctx context.Context, reason string) error
	// Others returns the used and reserved budget of started agents. It may be nil. It must be safe
	// for concurrent use.
	Others func() Used
	// News returns the agent's messages since the last call. It may be nil.
	News func() []string
	// Warn receives warnings for readers of the result. It may be nil. It must be safe for
	// concurrent use.
	Warn func(code, format string, args ...any)

	state
	counted  counted        // calls of this run
	asked    asked          // the conversation as the last request had it
	last     model.Settings // of the last request
	bodies   model.Bodies   // of requests
	pinned   int            // items at the start that stay word for word
	settled  int64          // tokens after the last compaction
	told     []string       // budgets that the model knows to be nearly used up
	repeats  repeats
	empty    int  // answers in a row without calls that do not end it either
	cuts     int  // answers in a row of a model that writes which were stopped before their end
	overflow int  // requests in a row that were too long
	noOwn    bool // the endpoint does not compact conversations
}

// Spent is a conversation's use so far.
type Spent struct {
	Turns  int
	Calls  int // of tools, those that the API ran itself included
	Hosted int // those
	Usage  model.Usage
	Models []transcript.ModelUse // that were asked, in their order
}

// Spent returns the use so far, also after an error.
func (c *Conversation) Spent() Spent {
	spent := c.spent
	spent.Calls += c.counted.ofScripts()
	return spent
}

// Nested counts a script's call, or returns the reason for refusing it. A tools.Dispatcher calls
// it.
func (c *Conversation) Nested() (refused string) {
	if !c.mayCall(c.counted.nest) {
		return limitWords
	}
	return ""
}

// charge adds the usage of one answer of the current model, at its tier of service.
func (c *Conversation) charge(u model.Usage) {
	c.spent.Usage = c.spent.Usage.Add(u)
	c.spent.Models = transcript.Booked(c.spent.Models, transcript.Usage(u))
	list := c.spent.Models[len(c.spent.Models)-1].Price
	if !list.Known() {
		return
	}
	switch list.Bound(u.ServiceTier) {
	case price.AtMost:
		c.warn("tier_price", "The price of the service tier %s is not known: its answers are booked at the price of default, and cost less than reported.", u.ServiceTier)
	case price.AtLeast:
		c.warn("tier_price", "The price of the service tier %s is not known: its answers are booked at the price of default, and may cost more than reported and than limits.cost_usd allows; leave model.service_tier out.", u.ServiceTier)
	}
}

// Cost returns the cost in US dollars; false if no price is known.
func (c *Conversation) Cost() (float64, bool) {
	return transcript.CostOf(c.spent.Models)
}

// Begin adds the first items. They stay word for word.
func (c *Conversation) Begin(items ...json.RawMessage) {
	c.Add(items...)
	c.pinned = len(c.history)
}

// Items is how many items the conversation has.
func (c *Conversation) Items() int { return len(c.history) }

// Add puts items into the conversation before the next turn.
func (c *Conversation) Add(items ...json.RawMessage) {
	c.add(items)
}

// Tell adds a message of the runner.
func (c *Conversation) Tell(text string) error {
	raw, err := rawitem.Words("developer", text)
	if err != nil {
		return err
	}
	c.Add(raw)
	return nil
}

// Run takes turns until the model is done, and returns its last words, also after an exhausted
// budget. The error is an *outcome.Stop, or ctx's.
func (c *Conversation) Run(ctx context.Context) (string, error) {
	if err := c.hadLastTurn(); err != nil {
		return c.said, err
	}
	c.lastTold = ""
	for {
		if err := c.halted(); err != nil {
			return c.said, err
		}
		if err := c.hear(); err != nil {
			return c.said, err
		}
		if c.lastBudget() == nil { // a last turn has no tokens for a summary, and room enough
			if err := c.fit(ctx); err != nil {
				return "", err
			}
		}
		if err := c.withinLimits(); err != nil {
			return c.said, err
		}
		last, err := c.tellBudgets()
		if err != nil {
			return "", err
		}
		said, err := c.turn(ctx, c.Settings)
		if err != nil {
			return "", err
		}
		if done, err := c.finished(said, last != nil); done || err != nil {
			said.abort() // it has no calls
			return said.Text(), err
		}
		if err := c.work(ctx, said); err != nil {
			return "", err
		}
		if last != nil {
			return c.said, last.nearlyExceeded()
		}
	}
}

// halted says why the run can't go on; nil where it can.
func (c *Conversation) halted() error {
	if c.Halt == nil {
		return nil
	}
	return c.Halt()
}

// turn requests the next answer until it succeeds. It shortens a request over the limit, and
// resends everything after the provider has lost its state.
func (c *Conversation) turn(ctx context.Context, settings model.Settings) (*intake, error) {
	for {
		said, err := c.ask(ctx, settings)
		var failure *model.Failure
		if !errors.As(err, &failure) {
			return said, err
		}
		again, err := c.recover(ctx, failure)
		if err != nil {
			return nil, err
		}
		if !again {
			return nil, c.explained(failure).Stop()
		}
		settings = c.again(settings)
	}
}

// again updates the settings of a repeated request.
func (c *Conversation) again(s model.Settings) model.Settings {
	now := c.Settings
	s.Model, s.Effort, s.Summary, s.Serial, s.ServiceTier = now.Model, now.Effort, now.Summary, now.Serial, now.ServiceTier
	s.Additional, s.Context, s.Flat, s.Chat = now.Additional, now.Context, now.Flat, now.Chat
	return s
}

// explained adds to a failure the effect of the offered tools.
func (c *Conversation) explained(failure *model.Failure) *model.Failure {
	switch {
	case !c.Settings.Wordy && failure.RefusesTools():
		failure.Advice = "set model.tools: aider-diff, with which a model needs none. Else "
	case failure.Kind == model.Incomplete && c.Settings.Wordy:
		failure.Advice = "set model.tools: aider-diff where whole files are too long for one answer. Else "
	}
	return failure
}

// recover makes the next request succeed, if possible.
func (c *Conversation) recover(ctx context.Context, failure *model.Failure) (bool, error) {
	switch {
	case c.Settings.Additional && failure.RefusesAdditional():
		c.warn("no_additional_tools", "The model's API refuses tools as an item of the input; from here on they are in the field tools: %s", failure.Message)
		c.Settings.Additional, c.Settings.Context = false, ""
		return true, nil
	case !c.Settings.Flat && rawitem.Grouped(c.Settings.Tools) && failure.RefusesNamespaces():
		c.warn("no_namespaces", "The model's API refuses namespaces of tools; from here on their tools are plain functions: %s", failure.Message)
		c.Settings.Flat = true
		return true, nil
	case failure.Quirk != "":
		c.Settings.Chat = append(slices.Clip(c.Settings.Chat), failure.Quirk)
		c.warn("endpoint_quirk", "The model's API refuses a usual part of Chat Completions; from here on requests use model.chat: %s. You can set that in the job. The API answered: %s",
			model.ListOf(c.Settings.Chat), failure.Detail())
		return true, nil
	case failure.Kind == model.Incomplete && c.Settings.Wordy && c.cuts < mostTries:
		c.cuts++
		return true, c.Tell(fmt.Sprintf(writtenCutWords, failure.Detail()))
	case failure.Kind == model.ContextLength:
		return c.shrink(ctx)
	case c.withoutTier(failure):
		return true, nil
	case failure.RefusesSealed():
		return c.unseal(failure)
	case failure.Elsewhere() && len(c.Fallbacks) > 0:
		return true, c.fallBack(ctx, failure)
	}
	return false, nil
}

// ask sends one request and takes its answer into the history. The calls of the
// answer run already. Its error may be a *model.Failure.
func (c *Conversation) ask(ctx context.Context, settings model.Settings) (*intake, error) {
	settings, err := c.withFound(settings)
	if err != nil {
		return nil, err
	}
	c.spent.Turns++
	request := model.Request{Settings: settings, History: c.history, New: c.sent}
	if err := c.recordRequest(&request); err != nil {
		return nil, err
	}
	c.asked.note(c.history, c.Settings.Model)
	began := time.Now()
	t := c.intake(ctx, settings.Speaking)
	response, err := c.Model.Respond(ctx, request, model.Observer{Item: t.item, Broken: t.broken})
	if err != nil {
		err = c.brokeOff(t, err, time.Since(began))
	} else {
		err = c.take(t, response, time.Since(began))
	}
	if err != nil {
		return nil, err
	}
	if text := t.LastWords(); text != "" && !settings.Speaking {
		c.said = text
	}
	return t, nil
}

// take processes a whole answer. It is recorded before any mutating call starts.
func (c *Conversation) take(t *intake, response *model.Response, took time.Duration) error {
	c.charge(response.Usage)
	c.cuts = 0
	if t.cutDown {
		response.Output = t.items
	}
	t.write()
	if response.Uncounted {
		c.warn("no_usage", "The model's API reports no token usage, or an impossible one: agent-ci counts one token for every four bytes sent and received.")
	}
	err := c.recordResponse(response, took, t.speaking)
	c.overflow = 0
	c.answered(response.Output, &response.Usage)
	t.settle()
	if err == nil && t.problem != nil {
		err = (&model.Failure{Kind: model.Malformed, Err: t.problem}).Stop()
	}
	if err != nil {
		t.drop()
		return err
	}
	t.batch.Commit()
	return nil
}

// brokeOff processes the kept part of an interrupted answer. It returns no error if the next
// request can continue from there.
func (c *Conversation) brokeOff(t *intake, err error, took time.Duration) error {
	var failure *model.Failure
	if errors.As(err, &failure) {
		c.charge(failure.Usage)
	}
	if !t.broken() {
		t.drop()
		return c.failed(err, failure)
	}
	c.answered(t.items, nil)
	t.settle()
	recorded := c.recordResponse(&model.Response{Status: transcript.Incomplete, Output: t.items}, took, t.speaking)
	if recorded == nil && failure != nil && failure.Temporary() {
		if recorded = c.recordRetry(failure, 0); recorded == nil {
			return nil
		}
	}
	t.abort()
	if outputs, _, bad := t.outputs(); bad == nil {
		c.Add(outputs...) // the conversation goes on, or ends, with a history that fits
	}
	if recorded != nil {
		return recorded
	}
	return c.failed(err, failure)
}

// failed records err if it is a failure.
func (c *Conversation) failed(err error, failure *model.Failure) error {
	if failure == nil {
		return err
	}
	return errors.Join(err, c.recordFailure(failure))
}

// emptyLimit is how many answers with nothing in them end a run.
const emptyLimit = 2

// finished reports whether the model is done: words and no calls. An empty answer gets one
// reminder, because an idle run must not look successful. So does mere commentary, while the model
// has turns left.
func (c *Conversation) finished(said *intake, lastTurn bool) (bool, error) {
	if said.Asks() || said.Text() != "" && (!said.RemarksOnly() || c.empty > 0 || lastTurn) {
		c.empty = 0
		return !said.Asks(), nil
	}
	if said.Refusal() != "" {
		return true, (&model.Failure{Kind: model.Refused, Message: said.Refusal()}).Stop()
	}
	c.empty++
	if said.RemarksOnly() {
		return false, c.Tell("Your last answer was commentary and called nothing. Go on with the task, or give your last message if it is done or cannot be.")
	}
	if c.empty >= emptyLimit {
		return true, outcome.Stopf(outcome.ModelFailed, "empty_answer",
			"The model answered %d times with neither text nor calls; run again, or test the endpoint with agent-ci doctor --online.", c.empty)
	}
	return false, c.Tell("Your last answer was empty. Go on with the task, or say in words that it is done or why it cannot be.")
}

// work puts the outputs of the calls of an answer into the history.
func (c *Conversation) work(ctx context.Context, t *intake) error {
	outputs, results, err := t.outputs()
	if err != nil {
		return err
	}
	c.Add(outputs...)
	for i, result := range results {
		c.took(t.Calls[i], result)
	}
	c.repeats.see(t.Calls[:len(results)], results)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.halted(); err != nil || len(results) == 0 {
		return err
	}
	if err := c.tries.usedUp(); err != nil {
		return err
	}
	return c.notStuck()
}

// Numbers of equal failing calls in a row for a warning, and for the end of the run.
const (
	stuckWarning = 3
	stuckEnd     = 5
)

func (c *Conversation) notStuck() error {
	switch {
	case c.repeats.count >= stuckEnd:
		return outcome.Stopf(outcome.ModelFailed, "stuck_loop",
			"The model made the same failing call of %s %d times in a row; see the transcript for why it failed.", c.repeats.call.Name, c.repeats.count)
	case c.repeats.count >= stuckWarning && !c.repeats.told:
		c.repeats.told = true
		return c.Tell(fmt.Sprintf("You have made the same call of %s %d times in a row, and it failed each time in the same way. "+
			"Read its output again and do something different; after %d the run is ended.", c.repeats.call.Name, c.repeats.count, stuckEnd))
	}
	return nil
}

// repeats counts equal failing calls across answers. The model only learns between answers, so one
// answer counts once.
type repeats struct {
	call  tools.Call // the last one
	count int        // how often in a row it failed
	told  bool
}

func (r *repeats) see(calls []tools.Call, results []tools.Result) {
	for i, call := range calls {
		failed := results[i].Failed
		if failed && i > 0 && results[i-1].Failed && sameCall(calls[i-1], call) {
			continue
		}
		switch {
		case !failed:
			r.count = 0
		case sameCall(r.call, call):
			r.count++
		default:
			r.count = 1
		}
		r.call, r.told = call, r.told && r.count > 1
	}
}

func sameCall(a, b tools.Call) bool { return a.Name == b.Name && a.Input == b.Input }
