// Package provider decides which models a job uses, with their profiles, their fallbacks and the tools that suit
// them. Scripted makes a model from a scripted session; package access opens the API.
package provider

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/command"
)

// Model answers an agent. The zero value answers nothing.
type Model struct {
	model.Responder
	ProfiledModel
	// Fallbacks replace a failing model, in order.
	Fallbacks []ProfiledModel
	// HasAnswers reports whether the model has more answers. Nil means always.
	HasAnswers func() bool
	// ForSubagent returns the model for a subagent. Nil means that none can start.
	ForSubagent func(Subagent) (Model, error)

	FirstPause time.Duration // pause before the first retry of a request
}

// Subagent describes an agent that needs a model, because another agent starts it.
type Subagent struct {
	ID      string
	Message string   // its task
	Job     *job.Job // names its model
}

// ProfiledModel is a model's name and profile.
type ProfiledModel struct {
	Name    string
	Profile catalog.Profile // adjusted by the job's settings
}

// Warn reports a warning to people.
type Warn func(code, format string, args ...any)

// Profiles returns a model's profile by name.
type Profiles func(name string) catalog.Profile

// New returns the job's model, whose answers come from answers, with its profile and fallbacks. It warns about
// unknown models.
func New(answers model.Responder, j *job.Job, profiles Profiles, warn Warn) (Model, error) {
	m := Model{Responder: answers}
	var err error
	if m.ProfiledModel, err = profiledModel(j.Model.Name, profiles, j, warn); err != nil {
		return Model{}, err
	}
	m.Fallbacks, err = fallbacks(m.ProfiledModel, profiles, j, warn)
	return m, err
}

// profiledModel returns the model called name with its profile, adjusted by the job's settings. It returns an error
// if the job sets a cost limit but the model's price is unknown, and warns about other doubtful settings.
func profiledModel(name string, profiles Profiles, j *job.Job, warn Warn) (ProfiledModel, error) {
	profile := profiles(name)
	if m := j.Model; !profile.Known() && (m.ContextWindow == 0 || m.Tools == "auto") {
		warn("unknown_model", "agent-ci does not know the model %s: it assumes a context window of %d tokens and offers apply_patch as a function; "+
			"set model.context_window and model.tools to the right values.", name, profile.ContextWindow)
	}
	profile = adjustedProfile(profile, j.Model)
	warnOfRefusableSettings(name, profile, j.Model, warn)
	lacksPrice := j.Limits.CostUSD != 0 && profile.Price == nil
	if lacksPrice && NeedsPrice(j) {
		return ProfiledModel{}, noPriceStop(name)
	}
	if lacksPrice {
		warn("no_price", "The price of %s is not known, so limits.cost_usd has no effect and the run shows no cost; "+
			"give it as model.price with input and output, in US dollars for a million tokens, or set limits.cost_usd to 0.", name)
	}
	return ProfiledModel{name, profile}, nil
}

// NeedsPrice reports whether the job's models must have a known price, because the job itself sets limits.cost_usd.
// The default limit does not need one.
func NeedsPrice(j *job.Job) bool {
	return j.Limits.CostUSD != 0 && j.Limits.CostUSD != job.DefaultCostUSD
}

// ProfilesFor returns the profiles of models at the address of the job's API.
func ProfilesFor(j *job.Job, env settings.Environment) Profiles {
	base := BaseURL(j, env)
	return func(name string) catalog.Profile { return catalog.ProfileAt(name, base) }
}

// noPriceStop returns the error that ends a run with a cost limit and a model without a known price.
func noPriceStop(name string) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "no_price",
		"limits.cost_usd is set and the price of %s is not known; give it as model.price with input and output, in US dollars for a million tokens.", name)
}

// warnOfRefusableSettings warns about settings of the job that the model's API may refuse.
func warnOfRefusableSettings(name string, p catalog.Profile, m job.Model, warn Warn) {
	effort := m.ReasoningEffort
	knowsEfforts := p.Reasoning && len(p.Efforts) > 0
	if effort != "" && knowsEfforts && !slices.Contains(p.Efforts, effort) {
		byDefault := ""
		if p.DefaultEffort != "" {
			byDefault = " (by itself " + p.DefaultEffort + ")"
		}
		warn("reasoning_effort", "%s takes the reasoning efforts %s%s, and model.reasoning_effort is %s, which its API may refuse.", name, strings.Join(p.Efforts, ", "), byDefault, effort)
	}
	if p.OutputLimit > 0 && m.MaxOutputTokens > p.OutputLimit {
		warn("output_limit", "%s writes at most %d tokens in an answer, and model.max_output_tokens is %d, which its API may refuse.", name, p.OutputLimit, m.MaxOutputTokens)
	}
	if p.InputLimit > 0 && m.ContextWindow > p.InputLimit {
		warn("input_limit", "%s reads at most %d tokens, and model.context_window is %d: a conversation may get too long for its API before agent-ci shortens it.", name, p.InputLimit, m.ContextWindow)
	}
}

// adjustedProfile returns a profile in which the job's settings replace those of the catalog.
func adjustedProfile(p catalog.Profile, m job.Model) catalog.Profile {
	if m.ContextWindow > 0 {
		p.ContextWindow = m.ContextWindow
	}
	if m.Wire == "chat" {
		p.Patch, p.Shell, p.ToolSearch, p.Code = "function", "function", false, false // Chat Completions know only functions
	}
	if m.Price.Known() {
		p.Price = &price.List{Rates: price.Rates{Input: m.Price.Input, Cached: m.Price.Cached, CacheWrite: p.CacheWrite * m.Price.Input, Output: m.Price.Output}}
	}
	return p
}

// BaseURL returns the address of the model's API, or "" for the default.
func BaseURL(j *job.Job, env settings.Environment) string {
	return cmp.Or(j.Model.BaseURL, env.Get("OPENAI_BASE_URL"))
}

// ModelProblems returns the problems with the job's models that would end a run: a cost limit with an unknown price,
// or a fallback that needs other tools. It sends no request.
func ModelProblems(j *job.Job, env settings.Environment) (all []error) {
	seen := map[string]bool{}
	for _, m := range Models(j, env) {
		if NeedsPrice(j) && m.Profile.Price == nil && !seen[m.Name] {
			seen[m.Name], all = true, append(all, noPriceStop(m.Name))
		}
	}
	if len(all) > 0 {
		return all
	}
	if _, err := New(nil, j, ProfilesFor(j, env), func(string, string, ...any) {}); err != nil {
		return []error{err}
	}
	return nil
}

// DefaultLimitUnpriced reports whether the default limits.cost_usd has no effect because the model's price is
// unknown.
func DefaultLimitUnpriced(j *job.Job, env settings.Environment) bool {
	return j.Limits.CostUSD == job.DefaultCostUSD && Models(j, env)[0].Profile.Price == nil
}

// maxScriptBytes is the maximum size of a scripted session, in bytes.
const maxScriptBytes = 64 << 20

// Scripted returns a model that answers from the scripted session at path. It skips the first usedTurns turns. It
// accepts unknown models, and knows no price except the job's.
func Scripted(ctx context.Context, path string, usedTurns int, j *job.Job) (Model, error) {
	script, err := readScript(ctx, path)
	if err != nil {
		return Model{}, err
	}
	script.SkipTurns(usedTurns)
	unpaid := func(name string) catalog.Profile {
		profile := catalog.ProfileOf(name)
		profile.Price = nil
		return profile
	}
	return fromScript(script, j, unpaid)
}

// fromScript returns a model that answers from a script. Subagents get answers from the same script.
func fromScript(script *scripted.Script, j *job.Job, profiles Profiles) (Model, error) {
	m, err := New(script, WithoutCostLimit(j), profiles, func(string, string, ...any) {})
	m.HasAnswers = func() bool { return script.TurnsLeft() > 0 }
	m.FirstPause = time.Millisecond
	m.ForSubagent = func(a Subagent) (Model, error) { return fromScript(script.ForSubagent(a.Message), a.Job, profiles) }
	return m, err
}

// WithoutCostLimit returns the job without limits.cost_usd, because scripted answers cost nothing.
func WithoutCostLimit(j *job.Job) *job.Job {
	unlimited := *j
	unlimited.Limits.CostUSD = 0
	return &unlimited
}

// readScript reads the scripted session at path.
func readScript(ctx context.Context, path string) (*scripted.Script, error) {
	raw, err := boundedfile.Read(ctx, path, maxScriptBytes)
	if err != nil {
		return nil, settings.ReadFailure(path, err)
	}
	if len(raw) > maxScriptBytes {
		return nil, settings.ReadFailure(path, fmt.Errorf("it has more than %d bytes", maxScriptBytes))
	}
	script, err := scripted.Read(filepath.Base(path), bytes.NewReader(raw))
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "scripted_session", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	script.StillRuns = waitCall // so that turns with until: ended wait for commands and scripts
	return script, nil
}

// waitCall returns the call that waits for a command or script, if output says that one is still running.
func waitCall(output string) (tool string, arguments map[string]any, runs bool) {
	if tool, arguments, runs = command.Waiting(output); runs {
		return tool, arguments, true
	}
	return code.Waiting(output)
}

// Models returns every model that the job may use: its own, which is first, its fallbacks, and those of agents'
// roles.
func Models(j *job.Job, env settings.Environment) []ProfiledModel {
	profileOf := ProfilesFor(j, env)
	adjusted := func(name string, m job.Model) ProfiledModel {
		return ProfiledModel{name, adjustedProfile(profileOf(name), m)}
	}
	all := []ProfiledModel{adjusted(j.Model.Name, j.Model)}
	others := j.Model
	others.ContextWindow, others.Price = 0, job.Price{} // these settings are about the first model
	for _, name := range j.Model.Fallbacks {
		all = append(all, adjusted(name, others))
	}
	for _, name := range slices.Sorted(maps.Keys(j.Agents.Roles)) {
		if role := j.Agents.Roles[name]; j.Agents.Enabled && role.Model != "" {
			all = append(all, adjusted(role.Model, j.Model))
		}
	}
	return all
}
