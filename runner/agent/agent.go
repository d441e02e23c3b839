// Package agent owns the loop over a model and its tools: first messages, calls, outputs and the
// end. It does not know repositories, GitHub or files. It reports to a transcript and ends with
// the model's last words or an outcome.Stop.
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
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/tools"
)

// Conversation is one working agent. Not safe for concurrent use.
type Conversation struct {
	// Name is the agent's name; empty for the run's own agent.
	Name     string
	Model    model.Responder
	Tools    *tools.Dispatcher
	Log      *eventlog.Log
	Settings model.Settings
	Limits   Limits
	// Window is the limit of a request and its answer, in tokens; 0 if unknown.
	Window int64
	// Fallbacks replace a failing model, in order.
	Fallbacks []ModelOptions
	Surroundings

	state
	requestMemory
	compactionState
	faults
	callCount       callCounter
	reportedBudgets []string
}

// Surroundings are functions by which the conversation asks and informs its caller.
type Surroundings struct {
	// ParseWritten parses the calls in the text of a model without tools. Nil for a model with tools.
	ParseWritten WrittenParser
	// Plan returns the agent's plan as text. Every compaction keeps it.
	Plan func() string
	// KeptTexts returns texts kept word for word by every compaction.
	KeptTexts func() []string
	// MustStop returns the reason to end the run after the calls of an answer, or nil.
	MustStop func() error
	// BeforeCompaction is asked before the conversation is made shorter; its error ends the run.
	BeforeCompaction func(ctx context.Context, reason string) error
	// Team is nil if the agent can start no others.
	Team Team
	// Warn receives warnings for readers of the result. It must be safe for concurrent use.
	Warn func(code, format string, args ...any)
}

// faults counts the model's consecutive faults, by kind.
type faults struct {
	failingRepeats   failingRepeats
	emptyAnswers     int
	brokenOffAnswers int // incomplete answers of a model with text edits
}

// Spent is what a conversation has used so far.
type Spent struct {
	Turns  int
	Calls  int // tool calls, including those that the API ran itself
	Usage  model.Usage
	Models []transcript.ModelUse // the models asked, in order of first use
}

// Spent returns the use so far, also after an error.
func (c *Conversation) Spent() Spent {
	spent := c.spent
	spent.Calls += c.callCount.scriptCalls()
	return spent
}

// CountScriptCall counts a call that a script makes. It returns the refusal if the call limit is reached, and
// "" if the call may run. The tools.Dispatcher calls it.
func (c *Conversation) CountScriptCall() (refused string) {
	if !c.countCall(&c.callCount.scripts) {
		return limitRefusal
	}
	return ""
}

// addUsage adds the usage of one answer to the current model's use. It warns if the price of the answer's
// service tier is unknown.
func (c *Conversation) addUsage(u model.Usage) {
	c.spent.Usage = c.spent.Usage.Add(u)
	c.spent.Models = transcript.CountForLast(c.spent.Models, transcript.Usage(u))
	defaultPrice := c.spent.Models[len(c.spent.Models)-1].Price
	if defaultPrice == nil {
		return
	}
	switch defaultPrice.Bound(u.ServiceTier) { // no case: the tier's price is known
	case price.AtMost:
		c.Warn("tier_price", "The price of the service tier %s is not known: its answers are booked at the price of default, and cost less than reported.", u.ServiceTier)
	case price.AtLeast:
		c.Warn("tier_price", "The price of the service tier %s is not known: its answers are booked at the price of default, and may cost more than reported and than limits.cost_usd allows; leave model.service_tier out.", u.ServiceTier)
	}
}

// Begin adds the first items of the conversation. Compactions keep them unchanged.
func (c *Conversation) Begin(items ...json.RawMessage) {
	c.AddItems(items...)
	c.pinnedItems = len(c.history)
}

// ItemCount returns the number of items in the conversation.
func (c *Conversation) ItemCount() int { return len(c.history) }

// AddItems puts items into the conversation before the next turn.
func (c *Conversation) AddItems(items ...json.RawMessage) { c.add(items) }

// Tell adds a message from the runner to the model.
func (c *Conversation) Tell(text string) error { return c.addMessage("developer", text) }

// TellExternal adds a message that comes from outside the runner, so the model does not take it for the
// runner's orders.
func (c *Conversation) TellExternal(text string) error { return c.addMessage("user", text) }

func (c *Conversation) addMessage(role, text string) error {
	raw, err := rawitem.TextMessage(role, text)
	if err != nil {
		return err
	}
	c.AddItems(raw)
	return nil
}

// Run takes turns until the model is done, and returns its last message. It also returns the last message with
// the error for an exhausted budget. The error is an *outcome.Stop, or that of ctx.
func (c *Conversation) Run(ctx context.Context) (lastWords string, err error) {
	if err := c.stopIfKilledInLastTurn(); err != nil {
		return c.lastWords, err
	}
	c.lastTurnMessage = ""
	for {
		if err := c.MustStop(); err != nil {
			return c.lastWords, err
		}
		if err := c.addNewMessages(); err != nil {
			return c.lastWords, err
		}
		if c.lastBudget() == nil { // the last turn has no tokens to spend on a summary
			if err := c.compactIfFull(ctx); err != nil {
				return "", err
			}
		}
		if err := c.stopIfOverLimit(); err != nil {
			return c.lastWords, err
		}
		finalBudget, err := c.reportBudgets()
		if err != nil {
			return "", err
		}
		answer, err := c.turn(ctx, c.Settings)
		if err != nil {
			return "", err
		}
		isLastTurn := finalBudget != nil
		if done, err := c.isDone(answer, isLastTurn); done || err != nil {
			answer.cancelCalls() // frees the context; the answer has no calls
			return answer.Text(), err
		}
		if err := c.runCalls(ctx, answer); err != nil {
			return "", err
		}
		if isLastTurn {
			return c.lastWords, finalBudget.nearlyExceeded()
		}
	}
}

// turn requests the next answer. If recoverFrom can handle a failure, turn asks again with the settings that
// recoverFrom changed.
func (c *Conversation) turn(ctx context.Context, settings model.Settings) (*answerIntake, error) {
	for {
		answer, err := c.ask(ctx, settings)
		var failure *model.Failure
		if !errors.As(err, &failure) {
			return answer, err
		}
		repeat, err := c.recoverFrom(ctx, failure)
		if err != nil {
			return nil, err
		}
		if !repeat {
			return nil, c.addToolHint(failure).Stop()
		}
		wordsOnly, schema := settings.WordsOnly, settings.Schema
		settings = c.Settings
		settings.WordsOnly, settings.Schema = wordsOnly, schema
	}
}

// addToolHint sets the advice of a failure that another value of model.tools would avoid.
func (c *Conversation) addToolHint(failure *model.Failure) *model.Failure {
	switch {
	case !c.Settings.NoTools && failure.RefusesTools():
		failure.Advice = "set model.tools: aider-diff, with which a model needs none. Else "
	case failure.Kind == model.Incomplete && c.Settings.NoTools:
		failure.Advice = "set model.tools: aider-diff where whole files are too long for one answer. Else "
	}
	return failure
}

// recoverFrom changes the conversation or its settings so that the failed request can succeed when repeated.
// repeat is false if nothing can be changed.
func (c *Conversation) recoverFrom(ctx context.Context, failure *model.Failure) (repeat bool, err error) {
	switch {
	case c.Settings.ToolsInInput && failure.RefusesToolsInInput():
		c.Warn("no_additional_tools", "The model's API refuses tools as an item of the input; from here on they are in the field tools: %s", failure.Message)
		c.Settings.ToolsInInput, c.Settings.Context = false, ""
		return true, nil
	case !c.Settings.FlatNamespaces && rawitem.HasNamespace(c.Settings.Tools) && failure.RefusesNamespaces():
		c.Warn("no_namespaces", "The model's API refuses namespaces of tools; from here on their tools are plain functions: %s", failure.Message)
		c.Settings.FlatNamespaces = true
		return true, nil
	case failure.Quirk != "":
		c.Settings.ChatQuirks = append(slices.Clip(c.Settings.ChatQuirks), failure.Quirk)
		c.Warn("endpoint_quirk", "The model's API refuses a usual part of Chat Completions; from here on requests use model.chat: %s. You can set that in the job. The API answered: %s",
			model.ListOf(c.Settings.ChatQuirks), failure.Detail())
		return true, nil
	case failure.Kind == model.Incomplete && c.Settings.NoTools && c.brokenOffAnswers < maxEditFailures:
		c.brokenOffAnswers++
		return true, c.Tell(fmt.Sprintf(cutAnswerText, failure.Detail()))
	case failure.Kind == model.ContextLength:
		return c.shortenRefused(ctx)
	case c.leaveFlexTier(failure):
		return true, nil
	case failure.RefusesSealed():
		return c.dropUndecryptable(failure)
	case failure.TryOtherModel() && len(c.Fallbacks) > 0:
		return true, c.fallBack(ctx, failure)
	}
	return false, nil
}

// ask sends one request and adds its answer to the history. When it returns, calls of the answer may
// already be running. Its error may be a *model.Failure.
func (c *Conversation) ask(ctx context.Context, settings model.Settings) (*answerIntake, error) {
	settings, err := c.withFoundTools(settings)
	if err != nil {
		return nil, err
	}
	c.spent.Turns++
	request := model.Request{Settings: settings, History: c.history, FirstNew: c.sentItems}
	if err := c.recordRequest(&request); err != nil {
		return nil, err
	}
	c.lastRequest.set(c.history, c.Settings.Model)
	began := time.Now()
	answer := c.newIntake(ctx, settings.WordsOnly)
	response, err := c.Model.Respond(ctx, request, answer)
	if err != nil {
		err = c.processInterrupted(answer, err, time.Since(began))
	} else {
		err = c.processAnswer(answer, response, time.Since(began))
	}
	if err != nil {
		return nil, err
	}
	if text := answer.LastWords(); text != "" && !settings.WordsOnly {
		c.lastWords = text
	}
	return answer, nil
}

// processAnswer records a complete answer and adds it to the history. Then batch.Commit lets its mutating calls
// start, so that no file changes before the answer is on record.
func (c *Conversation) processAnswer(answer *answerIntake, response *model.Response, took time.Duration) error {
	c.addUsage(response.Usage)
	c.brokenOffAnswers = 0
	if answer.itemsChanged {
		response.Output = answer.items
	}
	answer.addWrittenCalls()
	if response.EstimatedUsage {
		c.Warn("no_usage", "The model's API reports no token usage, or an impossible one: agent-ci counts one token for every four bytes sent and received.")
	}
	err := c.recordResponse(response, took, answer.wordsOnly)
	c.overlongInRow = 0
	c.addAnswerItems(response.Output, &response.Usage)
	answer.countCalls()
	if err != nil {
		answer.discard()
		return err
	}
	if answer.parseError != nil {
		answer.discard()
		return (&model.Failure{Kind: model.Malformed, Cause: answer.parseError}).Stop()
	}
	answer.batch.Commit()
	return nil
}

// processInterrupted keeps the part of an interrupted answer up to its last started call, if any. err is the error
// of the request. It returns nil if the conversation can continue from the kept part, or else err.
func (c *Conversation) processInterrupted(answer *answerIntake, err error, took time.Duration) error {
	var failure *model.Failure
	if errors.As(err, &failure) {
		c.addUsage(failure.Usage)
	}
	if !answer.KeepInterrupted() {
		answer.discard()
		return c.recordFailed(err, failure)
	}
	c.addAnswerItems(answer.items, nil)
	answer.countCalls()
	recordErr := c.recordResponse(&model.Response{Status: transcript.IncompleteStatus, Output: answer.items}, took, answer.wordsOnly)
	canContinue := failure != nil && failure.Temporary()
	if recordErr == nil && canContinue {
		if recordErr = c.recordRetry(failure, 0); recordErr == nil {
			return nil
		}
	}
	answer.cancelCalls()
	if outputs, _, outputErr := answer.outputs(); outputErr == nil {
		c.AddItems(outputs...) // each call in the history needs its output
	}
	if recordErr != nil {
		return recordErr
	}
	return c.recordFailed(err, failure)
}

// recordFailed records f, a failure that no retry resolved. It ignores a nil f. It returns err, joined with an error
// of recording.
func (c *Conversation) recordFailed(err error, f *model.Failure) error {
	if f == nil {
		return err
	}
	_, recordErr := c.Log.Append(transcript.TypeModelFailure, transcript.ModelFailure{
		Turn: c.spent.Turns, Attempts: max(f.Attempts, 1), Kind: string(f.Kind), Status: f.Status, Code: f.Code, Error: f.Error(), Data: string(f.Data),
		Usage: usageOf(f),
	})
	return errors.Join(err, recordErr)
}

// maxEmptyAnswers is the number of consecutive empty answers that ends a run.
const maxEmptyAnswers = 2

// isDone reports whether the model is done: its answer has text and no calls. After an empty answer it
// reminds the model once, because an idle run must not look successful. It also does so after mere
// commentary, except in the last turn.
func (c *Conversation) isDone(answer *answerIntake, lastTurn bool) (done bool, err error) {
	if answer.NeedsReply() {
		c.emptyAnswers = 0
		return false, nil
	}
	mayRemind := c.emptyAnswers == 0 && !lastTurn
	asksForReminder := answer.RemarksOnly() && mayRemind
	if answer.Text() != "" && !asksForReminder {
		c.emptyAnswers = 0
		return true, nil
	}
	if answer.Refusal() != "" {
		return true, (&model.Failure{Kind: model.Refused, Message: answer.Refusal()}).Stop()
	}
	c.emptyAnswers++
	if answer.RemarksOnly() {
		return false, c.Tell("Your last answer was commentary and called nothing. Go on with the task, or give your last message if it is done or cannot be.")
	}
	if c.emptyAnswers >= maxEmptyAnswers {
		return true, outcome.Stopf(outcome.ModelFailed, "empty_answer",
			"The model answered %d times with neither text nor calls; run again, or test the endpoint with agent-ci doctor --online.", c.emptyAnswers)
	}
	return false, c.Tell("Your last answer was empty. Go on with the task, or say in words that it is done or why it cannot be.")
}

// runCalls waits for the calls of an answer and adds their outputs to the history. It returns an error
// if the run must stop.
func (c *Conversation) runCalls(ctx context.Context, answer *answerIntake) error {
	outputs, results, err := answer.outputs()
	if err != nil {
		return err
	}
	c.AddItems(outputs...)
	for i, result := range results {
		c.noteResult(answer.Calls[i], result)
	}
	c.failingRepeats.countAnswer(answer.Calls[:len(results)], results)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.MustStop(); err != nil {
		return err
	}
	if len(results) == 0 {
		return nil
	}
	if err := c.editFailures.stopIfTooMany(); err != nil {
		return err
	}
	return c.stopIfStuck()
}

// The model gets a warning after stuckWarning equal failing calls in a row. The run ends after stuckEnd.
const (
	stuckWarning = 3
	stuckEnd     = 5
)

// stopIfStuck warns a model that repeats a failing call. If the model continues, it returns the error that ends
// the run.
func (c *Conversation) stopIfStuck() error {
	switch {
	case c.failingRepeats.inRow >= stuckEnd:
		return outcome.Stopf(outcome.ModelFailed, "stuck_loop",
			"The model made the same failing call of %s %d times in a row; see the transcript for why it failed.", c.failingRepeats.call.Name, c.failingRepeats.inRow)
	case c.failingRepeats.inRow >= stuckWarning && !c.failingRepeats.warned:
		c.failingRepeats.warned = true
		return c.Tell(fmt.Sprintf("You have made the same call of %s %d times in a row, and it failed each time in the same way. "+
			"Read its output again and do something different; after %d the run is ended.", c.failingRepeats.call.Name, c.failingRepeats.inRow, stuckEnd))
	}
	return nil
}

// failingRepeats counts equal failing calls across answers. Repeats within one answer count once, because
// the model sees the failure only after the answer.
type failingRepeats struct {
	call   tools.Call // the last call
	inRow  int        // consecutive failures of call
	warned bool
}

// countAnswer counts the calls of an answer; results are theirs, in the same order. It skips a failing call that
// equals the failing call before it.
func (r *failingRepeats) countAnswer(calls []tools.Call, results []tools.Result) {
	for i, call := range calls {
		failed := results[i].Failed
		if failed && i > 0 && results[i-1].Failed && sameCall(calls[i-1], call) {
			continue
		}
		switch {
		case !failed:
			r.inRow, r.warned = 0, false
		case sameCall(r.call, call):
			r.inRow++
		default:
			r.inRow, r.warned = 1, false
		}
		r.call = call
	}
}

func sameCall(a, b tools.Call) bool { return a.Name == b.Name && a.Input == b.Input }
