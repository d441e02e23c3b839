package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/identity"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// Model is who answers an agent, and what is known of it. The zero value answers
// nothing.
type Model struct {
	model.Responder
	Known
	// Fallbacks answer in its place, in their order, where it can't.
	Fallbacks []Known
	// Left says whether there is a further answer; nil where one can always be
	// asked for.
	Left func() bool

	firstPause time.Duration // before a request is sent again
}

// Known is what is known of a model.
type Known struct {
	Name    string
	Profile model.Profile // with what the job says in its place
}

// Warn tells people of something.
type Warn func(code, format string, args ...any)

// NewModel is the model that a job names, with answers from wherever they come. An
// unknown one is warned of.
func NewModel(answers model.Responder, j *job.Job, warn Warn) (Model, error) {
	m := Model{Responder: answers, firstPause: time.Duration(j.Model.Pause)}
	var err error
	if m.Known, err = know(j.Model.Name, j, warn); err != nil {
		return Model{}, err
	}
	m.Fallbacks, err = fallbacks(m.Known, j, warn)
	return m, err
}

// know is what is known of a model of the job.
func know(name string, j *job.Job, warn Warn) (Known, error) {
	profile := model.ProfileOf(name)
	if m := j.Model; !profile.Known() && (m.ContextWindow == 0 || m.Tools == "auto") {
		warn("unknown_model", "agent-ci knows nothing of the model %s: it assumes a context window of %d tokens and offers apply_patch as a function; "+
			"set model.context_window and model.tools to what is true.", name, profile.ContextWindow)
	}
	profile = adjusted(profile, j.Model)
	if j.Limits.CostUSD > 0 && !profile.Price.Known() {
		return Known{}, outcome.Stopf(outcome.InvalidInput, "no_price",
			"limits.cost_usd is set and the price of %s is not known; give it as model.price with input and output, in US dollars for a million tokens.", name)
	}
	return Known{name, profile}, nil
}

func adjusted(p model.Profile, m job.Model) model.Profile {
	if m.ContextWindow > 0 {
		p.ContextWindow = m.ContextWindow
	}
	if m.Wire == "chat" {
		p.Patch, p.Shell, p.ToolSearch = "function", "function", false // it has no other tools
	}
	if m.ParallelCalls != "auto" {
		p.ParallelCalls = m.ParallelCalls == "on"
	}
	if price := model.Price(m.Price); price.Known() {
		p.Price = price
	}
	return p
}

// NewAPIModel is the model behind the API that a job names. It is asked nothing yet.
func NewAPIModel(j *job.Job, env settings.Environment, version string, rec *record.Record) (Model, error) {
	m := j.Model
	endpoint := model.Endpoint{
		BaseURL: cmp.Or(m.BaseURL, env.Get("OPENAI_BASE_URL")), Headers: m.Headers, Query: m.Query, UserAgent: "agent-ci/" + version, Idle: time.Duration(m.Idle),
	}
	if err := letIn(&endpoint, m, env, rec); err != nil {
		return Model{}, err
	}
	api, err := speak(m.Wire, endpoint)
	if err != nil {
		return Model{}, outcome.Stopf(outcome.InvalidInput, "base_url", "%s; give a URL like https://api.openai.com/v1.", outcome.Sentence(err.Error())).Because(err)
	}
	return NewModel(api, j, rec.Warn)
}

// letIn gives an endpoint what lets a run in: a key, or the identity of the job.
func letIn(e *model.Endpoint, m job.Model, env settings.Environment, rec *record.Record) error {
	if m.Auth == "oidc" {
		return letInByIdentity(e, m, env, rec)
	}
	e.APIKey = env.Get(m.APIKeyEnv)
	if e.APIKey == "" && m.APIKeyEnv != "" {
		return outcome.Stopf(outcome.InvalidInput, "no_api_key",
			"There is no key for the model: set %s, or name another variable with model.api_key_env.", m.APIKeyEnv)
	}
	return nil
}

func letInByIdentity(e *model.Endpoint, m job.Model, env settings.Environment, rec *record.Record) error {
	own, err := identity.New(identity.Options{Job: m.Identity, BaseURL: e.BaseURL, Env: env, Learn: rec.Learn})
	if err != nil {
		return err
	}
	e.Workload, e.Transport = own.Workload(), own.Transport()
	return nil
}

// speak is a client of an API that speaks so on the wire.
func speak(wire string, e model.Endpoint) (model.Responder, error) {
	if wire == "chat" {
		return model.NewChat(e)
	}
	return model.NewOpenAI(e)
}

// mostScript is how many bytes a scripted session may have.
const mostScript = 64 << 20

// NewScriptedModel has the answers of the scripted session at path stand in for
// the model that a job names. Nobody needs to know that one.
func NewScriptedModel(ctx context.Context, path string, j *job.Job) (Model, error) {
	script, err := readScript(ctx, path)
	if err != nil {
		return Model{}, err
	}
	m, err := NewModel(script, j, func(string, string, ...any) {})
	m.Left = func() bool { return script.Left() > 0 }
	m.firstPause = time.Millisecond
	return m, err
}

func readScript(ctx context.Context, path string) (*model.Script, error) {
	raw, err := given.Read(ctx, path, mostScript)
	if err == nil && len(raw) > mostScript {
		err = fmt.Errorf("it has more than %d bytes", mostScript)
	}
	if err != nil {
		return nil, settings.NotReadable(path, err)
	}
	script, err := model.ReadScript(filepath.Base(path), bytes.NewReader(raw))
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "scripted_session", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return script, nil
}

// Price is what the model costs; nil when that is not known.
func (m Known) Price() *transcript.Price {
	if !m.Profile.Price.Known() {
		return nil
	}
	price := transcript.Price(m.Profile.Price)
	return &price
}
