package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// Model is who answers an agent, and what is known of it. The zero value answers
// nothing.
type Model struct {
	model.Responder
	Profile model.Profile // with what the job says in its place
	// Left says whether there is a further answer; nil where one can always be
	// asked for.
	Left func() bool

	firstPause time.Duration // before a request is sent again
}

// Warn tells people of something.
type Warn func(code, format string, args ...any)

// NewModel is the model that a job names, with answers from wherever they come. An
// unknown one is warned of.
func NewModel(answers model.Responder, j *job.Job, warn Warn) (Model, error) {
	profile := model.ProfileOf(j.Model.Name)
	if m := j.Model; !profile.Known() && (m.ContextWindow == 0 || m.Tools == "auto") {
		warn("unknown_model", "agent-ci knows nothing of the model %s: it assumes a context window of %d tokens and offers apply_patch as a function; "+
			"set model.context_window and model.tools to what is true.", m.Name, profile.ContextWindow)
	}
	profile = adjusted(profile, j.Model)
	if j.Limits.CostUSD > 0 && !profile.Price.Known() {
		return Model{}, outcome.Stopf(outcome.InvalidInput, "no_price",
			"limits.cost_usd is set and the price of %s is not known; give it as model.price with input and output, in US dollars for a million tokens.", j.Model.Name)
	}
	return Model{Responder: answers, Profile: profile, firstPause: time.Duration(j.Model.Pause)}, nil
}

func adjusted(p model.Profile, m job.Model) model.Profile {
	if m.ContextWindow > 0 {
		p.ContextWindow = m.ContextWindow
	}
	if m.Wire == "chat" {
		p.Patch, p.Shell, p.ToolSearch, p.Code = "function", "function", false, false // it has no other tools
	}
	p.Code = p.Code && !m.Programmatic
	if m.ParallelCalls != "auto" {
		p.ParallelCalls = m.ParallelCalls == "on"
	}
	if price := model.Price(m.Price); price.Known() {
		p.Price = price
	}
	return p
}

// NewAPIModel is the model behind the API that a job names. It is asked nothing yet.
func NewAPIModel(j *job.Job, env settings.Environment, version string, warn Warn) (Model, error) {
	m := j.Model
	key := env.Get(m.APIKeyEnv)
	if key == "" && m.APIKeyEnv != "" {
		return Model{}, outcome.Stopf(outcome.InvalidInput, "no_api_key",
			"There is no key for the model: set %s, or name another variable with model.api_key_env.", m.APIKeyEnv)
	}
	api, err := speak(m.Wire, model.Endpoint{
		BaseURL: cmp.Or(m.BaseURL, env.Get("OPENAI_BASE_URL")), APIKey: key, Headers: m.Headers, Query: m.Query, UserAgent: "agent-ci/" + version, Idle: time.Duration(m.Idle),
	})
	if err != nil {
		return Model{}, outcome.Stopf(outcome.InvalidInput, "base_url", "%s; give a URL like https://api.openai.com/v1.", outcome.Sentence(err.Error())).Because(err)
	}
	return NewModel(api, j, warn)
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
func (m Model) Price() *transcript.Price {
	if !m.Profile.Price.Known() {
		return nil
	}
	price := transcript.Price(m.Profile.Price)
	return &price
}
