package runner

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// speak is a client of the API that the job names.
func (r *run) speak(e model.Endpoint) (model.Responder, error) {
	if r.job.Model.Wire == "chat" {
		return model.NewChat(e)
	}
	return model.NewOpenAI(e)
}

// retrying asks next as patiently as the job says.
func (r *run) retrying(next model.Responder) *model.Retrying {
	m := r.job.Model
	return &model.Retrying{
		Next: next, Attempts: m.Attempts, First: time.Duration(m.Pause), Longest: time.Duration(m.LongestPause),
		Outage: time.Duration(m.Outage), Report: r.recordRetry,
	}
}

func (r *run) recordRetry(retry model.Retry) error {
	failure := retry.Failure
	event := transcript.ModelRetry{
		Turn: r.conversation.Spent().Turns, Attempt: retry.Attempt, Error: failure.Error(), Wait: retry.Wait.Seconds(), Data: string(failure.Data),
	}
	if failure.Usage != (model.Usage{}) {
		usage := transcript.Usage(failure.Usage)
		event.Usage = &usage
		r.conversation.Charge(failure.Usage)
	}
	return r.rec.Append(transcript.TypeModelRetry, event)
}

// knowModel finds the model's profile and what the job says in its place.
func (r *run) knowModel() error {
	m := r.job.Model
	r.profile = model.ProfileOf(m.Name)
	if !r.profile.Known && r.options.Replay == "" && (m.ContextWindow == 0 || m.Tools == "auto") {
		r.rec.Warn("unknown_model", "agent-ci knows nothing of the model %s: it assumes a context window of %d tokens and offers apply_patch as a function; "+
			"set model.context_window and model.tools to what is true.", m.Name, r.profile.ContextWindow)
	}
	if m.ContextWindow > 0 {
		r.profile.ContextWindow = m.ContextWindow
	}
	if m.Wire == "chat" {
		r.profile.Patch, r.profile.Shell = "function", "function" // it has no other tools
	}
	if m.ParallelCalls != "auto" {
		r.profile.ParallelCalls = m.ParallelCalls == "on"
	}
	if price := model.Price(m.Price); price.Known() {
		r.profile.Price = price
	}
	if r.job.Limits.CostUSD > 0 && !r.profile.Price.Known() {
		return outcome.Stopf(outcome.InvalidInput, "no_price",
			"limits.cost_usd is set and the price of %s is not known; give it as model.price with input and output, in US dollars for a million tokens.", m.Name)
	}
	return nil
}

// newConversation is the agent's, within the job's limits.
func (r *run) newConversation() *agent.Conversation {
	l := r.job.Limits
	return &agent.Conversation{
		Model: r.model, Log: r.rec.Log(), Warn: r.rec.Warn, Window: r.profile.ContextWindow, Price: r.price(), Plan: r.planWords,
		Limits: agent.Limits{
			Turns: l.Turns, Calls: l.ToolCalls, Tokens: l.Tokens, CostUSD: l.CostUSD, Time: time.Duration(l.Time), Began: r.began,
		},
	}
}

// modelSettings are the parts of every request that stay the same.
func (r *run) modelSettings(definitions []json.RawMessage) model.Settings {
	m := r.job.Model
	s := model.Settings{
		Model: m.Name, Instructions: agent.Instructions, Tools: definitions, CacheKey: r.rec.ID,
		Effort: m.ReasoningEffort, Summary: m.Summary, Verbosity: m.Verbosity, ServiceTier: m.ServiceTier,
		MaxOutputTokens: m.MaxOutputTokens, Stored: m.State == "server", Serial: !r.profile.ParallelCalls, Whole: !m.Stream,
	}
	if !r.profile.Reasoning {
		s.Effort, s.Summary = "", ""
	}
	return s
}

// price is the model's; nil when it is not known.
func (r *run) price() *transcript.Price {
	if !r.profile.Price.Known() {
		return nil
	}
	price := transcript.Price(r.profile.Price)
	return &price
}

// planWords is the agent's plan as it wrote it, for itself.
func (r *run) planWords() string {
	var s strings.Builder
	for _, step := range r.plan.Steps {
		fmt.Fprintf(&s, "- [%s] %s\n", step.Status, step.Step)
	}
	return s.String()
}

// cost is what the model cost so far; nil when no price is known.
func (r *run) cost() *float64 {
	if r.conversation == nil {
		return nil
	}
	cost, known := r.conversation.Cost()
	if !known {
		return nil
	}
	return &cost
}
