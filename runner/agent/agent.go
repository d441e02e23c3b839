// Package agent owns the loop over a model and its tools: what the model is
// told at the start, taking its calls, giving back their outputs, and ending.
// It knows no repository, no GitHub and no files; what it does is told to a
// transcript, and its end is an Ending or an outcome.Stop.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// Limits end a conversation that goes on too long. Zero means no limit.
type Limits struct {
	Turns  int
	Calls  int
	Tokens int64
}

// Conversation is one agent at work. It is used by one goroutine.
type Conversation struct {
	Model    model.Responder
	Tools    *tools.Dispatcher
	Log      *transcript.Log
	Settings model.Settings
	Limits   Limits
	// Text sees the agent's words as they come. It may be nil.
	Text func(delta string)
	// Warn is told of what a reader of the result should know. It may be nil,
	// and is called from several goroutines.
	Warn func(code, format string, args ...any)

	history  []json.RawMessage
	sent     int // items of history that a request has carried
	previous string
	recorded []byte // settings as the transcript last saw them
	spent    Spent
	numbered int // calls that got a number
	repeats  repeats
	empty    int // answers in a row with neither words nor calls
}

// Spent is what a conversation has used so far.
type Spent struct {
	Turns  int
	Calls  int // of tools, those that the API ran itself included
	Hosted int // those
	Usage  model.Usage
}

// Spent tells what was used so far, also after an error.
func (c *Conversation) Spent() Spent { return c.spent }

// Add puts items into the conversation before the next turn.
func (c *Conversation) Add(items ...json.RawMessage) { c.history = append(c.history, items...) }

// Tell adds a message of the runner.
func (c *Conversation) Tell(text string) error {
	raw, err := encode(message("developer", text))
	if err != nil {
		return err
	}
	c.Add(raw)
	return nil
}

// Run takes turns until the model says that it is done, and gives its last
// words. The error is an *outcome.Stop, or ctx's.
func (c *Conversation) Run(ctx context.Context) (string, error) {
	for {
		if err := c.withinLimits(); err != nil {
			return "", err
		}
		said, err := c.turn(ctx)
		if err != nil {
			return "", err
		}
		if done, err := c.finished(said); done || err != nil {
			said.abort() // it has no calls
			return said.text(), err
		}
		if err := c.work(ctx, said); err != nil {
			return "", err
		}
	}
}

func (c *Conversation) withinLimits() error {
	switch l := c.Limits; {
	case l.Turns > 0 && c.spent.Turns >= l.Turns:
		return exceeded("turns", "limits.turns", "%d turns are used up", l.Turns)
	case l.Calls > 0 && c.spent.Calls >= l.Calls:
		return exceeded("tool_calls", "limits.tool_calls", "%d tool calls are used up", l.Calls)
	case l.Tokens > 0 && c.spent.Usage.Total() >= l.Tokens:
		return exceeded("tokens", "limits.tokens", "%d of %d tokens are used", c.spent.Usage.Total(), l.Tokens)
	}
	return nil
}

func exceeded(reason, key, format string, args ...any) *outcome.Stop {
	return outcome.Stopf(outcome.BudgetExceeded, reason,
		"The agent was stopped before it was done: %s; raise %s or give a smaller task.", fmt.Sprintf(format, args...), key)
}

// turn sends one request and takes its answer into the history. The calls of
// the answer run already.
func (c *Conversation) turn(ctx context.Context) (*intake, error) {
	c.spent.Turns++
	request := model.Request{Settings: c.Settings, History: c.history, New: c.sent, Previous: c.previous}
	if err := c.recordRequest(request); err != nil {
		return nil, err
	}
	began := time.Now()
	t := c.intake(ctx)
	response, err := c.Model.Respond(ctx, request, model.Observer{Text: c.Text, Item: t.item, Broken: t.broken})
	if err != nil {
		return t, c.brokeOff(t, err, time.Since(began))
	}
	return t, c.take(t, response, time.Since(began))
}

// take takes a whole answer. It is on record before a call that changes
// something starts.
func (c *Conversation) take(t *intake, response *model.Response, took time.Duration) error {
	c.spent.Usage = c.spent.Usage.Add(response.Usage)
	c.history = append(c.history, response.Output...)
	c.sent = len(c.history)
	c.previous = response.ID
	t.settle()
	err := c.recordResponse(response, took)
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

// brokeOff takes what stays of an answer that broke off. It is no error when
// the next request can go on from there.
func (c *Conversation) brokeOff(t *intake, err error, took time.Duration) error {
	var failure *model.Failure
	if errors.As(err, &failure) {
		err = failure.Stop()
	}
	if !t.broken() {
		t.drop()
		return err
	}
	c.history = append(c.history, t.items...)
	if !c.Settings.Stored { // else the provider has not kept them, and they are sent
		c.sent = len(c.history)
	}
	t.settle()
	if recorded := c.recordResponse(&model.Response{Status: "incomplete", Output: t.items}, took); recorded != nil {
		err = recorded
	} else if failure != nil && failure.Temporary() {
		err = c.recordBreak(failure)
	}
	if err == nil {
		return nil
	}
	t.abort()
	if outputs, _, bad := t.outputs(); bad == nil {
		c.Add(outputs...) // the run ends with a history that fits
	}
	return err
}

// emptyLimit is how many answers with nothing in them end a run.
const emptyLimit = 2

// finished says whether the model is done: it speaks and calls nothing. An
// answer with nothing in it is pointed out once; that a run did nothing must
// not look like success.
func (c *Conversation) finished(said *intake) (bool, error) {
	if said.asks() || said.text() != "" {
		c.empty = 0
		return !said.asks(), nil
	}
	if said.refusal() != "" {
		return true, (&model.Failure{Kind: model.Refused, Message: said.refusal()}).Stop()
	}
	c.empty++
	if c.empty >= emptyLimit {
		return true, outcome.Stopf(outcome.ModelFailed, "empty_answer",
			"The model answered %d times with neither words nor calls; run again, or check that the endpoint serves this model with tools.", c.empty)
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
	c.repeats.see(t.calls[:len(results)], results)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(results) == 0 {
		return nil
	}
	return c.notStuck()
}

// A model that repeats a failing call is told at repeatsTold and stopped at
// repeatsEnd.
const (
	repeatsTold = 3
	repeatsEnd  = 5
)

func (c *Conversation) notStuck() error {
	switch {
	case c.repeats.count >= repeatsEnd:
		return outcome.Stopf(outcome.ModelFailed, "stuck_loop",
			"The model made the same failing call of %s %d times in a row; see the transcript for why it failed.", c.repeats.call.Name, c.repeats.count)
	case c.repeats.count >= repeatsTold && !c.repeats.told:
		c.repeats.told = true
		return c.Tell(fmt.Sprintf("You have made the same call of %s %d times in a row, and it failed each time in the same way. "+
			"Read its output again and do something different; after %d the run is ended.", c.repeats.call.Name, c.repeats.count, repeatsEnd))
	}
	return nil
}

// repeats counts identical failing calls in a row, once for each answer: a
// model can learn only from answer to answer.
type repeats struct {
	call  tools.Call
	count int
	told  bool
}

func (r *repeats) see(calls []tools.Call, results []tools.Result) {
	counted := false
	for i, call := range calls {
		same := r.call.Name == call.Name && r.call.Input == call.Input
		switch {
		case !results[i].Failed:
			*r, counted = repeats{}, false
		case !same:
			*r, counted = repeats{call: call, count: 1}, true
		case !counted:
			r.count++
			counted = true
		}
	}
}
