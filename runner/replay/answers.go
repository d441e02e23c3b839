package replay

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Answers is a model that gives recorded answers.
type Answers struct {
	answers        []*model.Response
	failuresBefore map[int][]*model.Failure // by the number of answers before: failures after which a fallback model continued
	nextIndex      int
	RanOut         bool                   // one more was asked for
	askedPeople    bool                   // the run put its questions to people
	prices         map[string]*price.List // of the models of the run
	Hooks          *hooks.Hooks           // with recorded answers; nil for none
	subagents      answersByAgent
	scripted       bool // they come from a scripted session
	endsWaiting    bool // the agent was stopped while it waited for the next answer
}

// answersByAgent maps agents' ids to their recorded answers.
type answersByAgent map[string]*Answers

// forAgent returns the answers of an agent, adding it if it is new.
func (all answersByAgent) forAgent(id string) *Answers {
	if all[id] == nil {
		all[id] = &Answers{failuresBefore: map[int][]*model.Failure{}}
	}
	return all[id]
}

// Model returns the job's model with these answers. Its context window is unlimited, so the conversation is
// never shortened: no answer is recorded for that.
func (a *Answers) Model(j *job.Job, warn provider.Warn) (provider.Model, error) {
	profileOf := func(name string) catalog.Profile {
		profile := catalog.ProfileAt(name, j.Model.BaseURL)
		profile.Price = a.prices[name]
		return profile
	}
	pricedJob := j
	if a.scripted {
		pricedJob = provider.WithoutCostLimit(j)
	}
	m, err := provider.New(a, pricedJob, profileOf, warn)
	m.Profile.ContextWindow = 0
	for i := range m.Fallbacks {
		m.Fallbacks[i].Profile.ContextWindow = 0
	}
	m.HasAnswers = func() bool { return a.nextIndex < len(a.answers) }
	m.ForSubagent = func(subagent provider.Subagent) (provider.Model, error) {
		started := a.subagents.forAgent(subagent.ID)
		started.prices, started.subagents, started.scripted = a.prices, a.subagents, a.scripted
		return started.Model(subagent.Job, warn)
	}
	return m, err
}

// NoneUsed reports whether there are recorded answers and none was requested.
func (a *Answers) NoneUsed() bool { return a.nextIndex == 0 && len(a.answers) > 0 }

// Respond returns the next recorded answer, after the recorded failures before it. When the answers run
// out, it fails; an agent that was stopped while it waited for an answer waits until ctx ends.
func (a *Answers) Respond(ctx context.Context, r model.Request, observe model.Observer) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if failures := a.failuresBefore[a.nextIndex]; len(failures) > 0 {
		givesUpTier := failures[0].Kind == model.TierBusy && r.Settings.ServiceTier == model.FlexTier // and asks again, for the same failure
		if !givesUpTier {
			a.failuresBefore[a.nextIndex] = failures[1:]
		}
		return nil, failures[0]
	}
	if a.nextIndex == len(a.answers) && a.endsWaiting {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if a.nextIndex == len(a.answers) {
		a.RanOut = true
		return nil, outcome.Stopf(outcome.ModelFailed, string(model.ScriptMismatch),
			"The replay asks for more than the %d recorded answers: a tool or a check had another result, or the run was stopped there.", len(a.answers))
	}
	a.nextIndex++
	answer := a.answers[a.nextIndex-1]
	for _, item := range answer.Output {
		observe.TakeItem(item)
	}
	return answer, nil
}
