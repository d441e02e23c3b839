package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Compaction starts when compactShare of the window is full. Trimming leaves trimShare of it full.
const (
	compactShare = 0.85
	trimShare    = 0.50
)

// compactionState is what a conversation remembers about its compactions.
type compactionState struct {
	pinnedItems          int   // number of first items that compaction keeps unchanged
	compactedTokens      int64 // tokens left after the last compaction
	overlongInRow        int   // consecutive requests refused for their length
	noEndpointCompaction bool  // the endpoint cannot compact, or failed to
}

// tokenCount is the provider's latest token count, and the part of the conversation it covers.
type tokenCount struct {
	tokens        int64 // of the last request and its answer
	items         int   // number of history items that tokens covers
	reportedTools int   // number of found tools reported to the model
	lastAnswer    int   // index of the last answer's first item in the history
}

// tokens returns the estimated tokens of the next request. It adds an estimate of the new items and tools to the
// provider's last count. Without such a count it estimates everything.
func (c *Conversation) tokens() int64 {
	foundTokens := c.foundTokens(c.found.byFunction)
	if counted := c.lastCount; counted.tokens > 0 {
		newItemTokens := rawitem.EstimateTokens(c.history[counted.items:])
		newToolTokens := foundTokens - c.foundTokens(c.found.byFunction[:counted.reportedTools])
		return counted.tokens + newItemTokens + newToolTokens
	}
	return rawitem.EstimateTokens(c.history) + int64(len(c.Settings.Instructions))/rawitem.BytesInToken + rawitem.EstimateTokens(c.Settings.Tools) + foundTokens
}

// Reasons of a compaction.
const (
	reasonWindow = "window"
	reasonLength = "context_length"
	// reasonInterrupted marks a compaction that a killed run did not finish. It leaves the conversation unchanged.
	reasonInterrupted = "interrupted"
)

// compactIfFull shortens the conversation when it nearly fills the model's window. It tries the provider's
// endpoint, then a summary, then trimming. After a compaction it waits until the conversation has grown by a
// tenth of the window. Otherwise a compaction that barely helps would repeat every turn.
func (c *Conversation) compactIfFull(ctx context.Context) error {
	if c.Window <= 0 || len(c.history) == c.pinnedItems {
		return nil
	}
	tokens := c.tokens()
	isFull := float64(tokens) >= compactShare*float64(c.Window)
	hasGrown := tokens >= c.compactedTokens+c.Window/10
	if !isFull || !hasGrown {
		return nil
	}
	if err := c.BeforeCompaction(ctx, reasonWindow); err != nil {
		return err
	}
	trim := func(context.Context) (*compaction, error) {
		return c.compactByTrimming(int64(trimShare * float64(c.Window)))
	}
	for _, compact := range []func(context.Context) (*compaction, error){c.compactByEndpoint, c.compactBySummary, trim} {
		compacted, err := compact(ctx)
		if err != nil {
			return err
		}
		if compacted != nil {
			return c.adoptCompaction(compacted, reasonWindow)
		}
	}
	// Nothing helped: send the conversation unchanged. If the API refuses it, shortenRefused is next.
	return c.adoptCompaction(&compaction{method: "trimming", items: c.history, before: c.tokens()}, reasonWindow)
}

// maxOverlongRequests is how often in a row a conversation is shortened after a refusal for its length.
const maxOverlongRequests = 4

// shortenRefused shortens a conversation that the API refused for its length. The first time it asks the
// provider's endpoint to compact it. If that fails, and every later time, it trims half.
func (c *Conversation) shortenRefused(ctx context.Context) (shortened bool, err error) {
	c.overlongInRow++
	if c.overlongInRow > maxOverlongRequests {
		return false, nil
	}
	if err := c.BeforeCompaction(ctx, reasonLength); err != nil {
		return false, err
	}
	if c.overlongInRow == 1 {
		compacted, err := c.compactByEndpoint(ctx)
		if err != nil {
			return false, err
		}
		if compacted != nil {
			return true, c.adoptCompaction(compacted, reasonLength)
		}
	}
	compacted, err := c.compactByTrimming(rawitem.EstimateTokens(c.history) / 2)
	if err != nil {
		return false, err
	}
	if compacted == nil {
		return false, nil
	}
	return true, c.adoptCompaction(compacted, reasonLength)
}

// compaction is the result of making a conversation shorter.
type compaction struct {
	method string
	items  []json.RawMessage
	usage  *transcript.Usage
	before int64 // tokens before the compaction
}

// adoptCompaction replaces the history by the compacted items and records the compaction.
func (c *Conversation) adoptCompaction(compacted *compaction, reason string) error {
	c.replace(compacted.items, reason)
	c.compactedTokens = c.tokens()
	c.reportedBudgets = nil // the compaction may have removed the messages about budgets
	_, err := c.Log.Append(transcript.TypeCompaction, transcript.Compaction{
		Turn: c.spent.Turns, Method: compacted.method, Reason: reason, TokensBefore: compacted.before, TokensAfter: c.compactedTokens,
		Items: rawitem.WithImageDigests(c.history), Usage: compacted.usage,
	})
	return err
}

// compactByEndpoint asks the provider's endpoint to compact the conversation. It puts the pinned items before
// the endpoint's items, which may repeat them. It returns nil if the endpoint cannot compact.
func (c *Conversation) compactByEndpoint(ctx context.Context) (*compaction, error) {
	compacter, canCompact := c.Model.(model.Compacter)
	if !canCompact || c.noEndpointCompaction {
		return nil, nil
	}
	response, err := compacter.Compact(ctx, model.Request{Settings: c.Settings, History: c.history})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, model.ErrNoCompaction):
		c.noEndpointCompaction = true
		return nil, nil
	case err != nil:
		c.Warn("no_compaction", "The endpoint could not shorten the conversation, so agent-ci did: %v", err)
		c.noEndpointCompaction = true
		return nil, nil
	}
	c.addUsage(response.Usage)
	items := slices.Clone(c.history[:c.pinnedItems])
	for _, item := range response.Output {
		if !c.repeatsBeginning(item) {
			items = append(items, item)
		}
	}
	usage := transcript.Usage(response.Usage)
	return c.newCompaction("endpoint", callitem.WithoutUnpaired(items), &usage)
}

// repeatsBeginning reports whether an item has the same text as a pinned item.
func (c *Conversation) repeatsBeginning(item json.RawMessage) bool {
	text := rawitem.MessageText(item)
	return text != "" && slices.ContainsFunc(c.history[:c.pinnedItems], func(pinned json.RawMessage) bool { return rawitem.MessageText(pinned) == text })
}

// newCompaction returns the compaction that replaces the history by items, followed by the kept texts, the plan
// and the searched tools. It returns nil if that saves no tokens. usage may be nil.
func (c *Conversation) newCompaction(method string, items []json.RawMessage, usage *transcript.Usage) (*compaction, error) {
	for _, addTo := range []func([]json.RawMessage) ([]json.RawMessage, error){c.withKeptTexts, c.withPlan, c.withSearchedTools} {
		var err error
		if items, err = addTo(items); err != nil {
			return nil, err
		}
	}
	before := rawitem.EstimateTokens(c.history) + c.foundTokens(c.found.byFunction)
	after := rawitem.EstimateTokens(items) + c.foundTokens(c.found.survivesCompaction(c.lastCount.reportedTools))
	if after >= before {
		return nil, nil
	}
	return &compaction{method: method, items: items, usage: usage, before: c.tokens()}, nil
}

// planHead begins the message with the plan.
const planHead = "Your plan, word for word:\n"

// withPlan appends the current plan, and removes the plan of an earlier compaction. It also removes
// messages about budgets, which reportBudgets repeats.
func (c *Conversation) withPlan(items []json.RawMessage) ([]json.RawMessage, error) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool {
		text := rawitem.MessageText(item)
		return strings.HasPrefix(text, planHead) || strings.HasPrefix(text, budgetHead)
	})
	plan := c.Plan()
	if plan == "" {
		return items, nil
	}
	raw, err := rawitem.TextMessage("developer", planHead+plan)
	return append(items, raw), err
}

// keptTextHead begins the message with a text that compactions keep (see Surroundings.KeptTexts).
const keptTextHead = "You had loaded this before the conversation was made shorter:\n"

// withKeptTexts appends the kept texts that items do not contain.
func (c *Conversation) withKeptTexts(items []json.RawMessage) ([]json.RawMessage, error) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return strings.HasPrefix(rawitem.MessageText(item), keptTextHead) })
	for _, text := range c.KeptTexts() {
		encoded, err := rawitem.Encode(text)
		if err != nil {
			return nil, err
		}
		// items are JSON, so look for the text in its JSON form
		escaped := bytes.Trim(encoded, `"`)
		if slices.ContainsFunc(items, func(item json.RawMessage) bool { return bytes.Contains(item, escaped) }) {
			continue
		}
		raw, err := rawitem.TextMessage("user", keptTextHead+text)
		if err != nil {
			return nil, err
		}
		items = append(items, raw)
	}
	return items, nil
}

// summaryRequest is the message that asks the model for a summary.
const summaryRequest = "The conversation has grown nearly too long and will be replaced by your summary of it. Call nothing; write the summary now, for " +
	"yourself: what is done and in which files, what you found out (paths, names, commands, exact error texts), what failed and why, and what is " +
	"left to do. The task, the repository's instructions and your plan are kept word for word beside it."

// compactBySummary asks the model for a summary, which replaces all but the pinned items and the last
// turn. It returns nil if the model gives no summary.
func (c *Conversation) compactBySummary(ctx context.Context) (*compaction, error) {
	original, tokensBefore := c.position, c.tokens()
	if err := c.Tell(summaryRequest); err != nil {
		return nil, err
	}
	settings := c.Settings
	settings.WordsOnly = true
	answer, err := c.ask(ctx, settings)
	c.position = original
	var failure *model.Failure
	switch {
	case errors.As(err, &failure):
		return nil, nil
	case err != nil:
		return nil, err
	}
	answer.cancelCalls() // none of its calls ran
	if answer.Text() == "" || answer.NeedsReply() {
		return nil, nil
	}
	summary, err := rawitem.TextMessage("developer", "The conversation so far was replaced by your own summary of it:\n\n"+answer.Text())
	if err != nil {
		return nil, err
	}
	items := append(slices.Clone(c.history[:c.pinnedItems]), summary)
	compacted, err := c.newCompaction("summary", append(items, c.latestTurn()...), nil)
	if compacted != nil {
		compacted.before = tokensBefore // without the request for the summary
	}
	return compacted, err
}

// latestTurn returns the last answer with the outputs of its calls, or nil if they exceed a tenth of the
// window.
func (c *Conversation) latestTurn() []json.RawMessage {
	last := c.history[max(c.lastCount.lastAnswer, c.pinnedItems):]
	if rawitem.EstimateTokens(last) < c.Window/10 {
		return last
	}
	return nil
}

// compactByTrimming shortens the conversation to about target tokens without a request. It first empties the
// oldest outputs, then removes the oldest items. It removes a call only together with its output, and never
// removes pinned items.
func (c *Conversation) compactByTrimming(target int64) (*compaction, error) {
	items := slices.Clone(c.history)
	if err := callitem.EmptyOutputs(items[c.pinnedItems:], rawitem.EstimateTokens(items)-target); err != nil {
		return nil, err
	}
	rest := callitem.DropOldest(items[c.pinnedItems:], rawitem.EstimateTokens(items)-target)
	dropped := len(c.history) - c.pinnedItems - len(rest)
	items = append(slices.Clone(c.history[:c.pinnedItems]), rest...)
	if dropped > 0 {
		note, err := rawitem.TextMessage("developer", fmt.Sprintf("The runner left out the %d oldest items after the task to make room. "+
			"What you did stands in the checkout, and git status and git diff show it: look there before you repeat anything.", dropped))
		if err != nil {
			return nil, err
		}
		items = slices.Insert(items, c.pinnedItems, note)
	}
	return c.newCompaction("trimming", items, nil)
}
