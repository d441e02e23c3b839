// Package access opens what answers an agent: the API of the job's model, with its credentials, or a scripted
// session. It says why this machine has no access to the API.
package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/agent/identity"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/responses"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Find returns the model of a run, without sending a request. Its answers come from the scripted session in the file
// script, or from the API if script is "". usedTurns is how many scripted turns a resumed run has used already.
// version is that of agent-ci.
func Find(ctx context.Context, j *job.Job, script string, usedTurns int, env settings.Environment, version string, rec *record.Record) (provider.Model, error) {
	if short := rec.Redactor().Short(); len(short) > 0 {
		rec.Warn("short_secret", "%s: the value is shorter than %d characters and is not searched for in outputs.", strings.Join(short, ", "), secrets.MinLength)
	}
	if script == "" {
		return API(j, env, version, rec)
	}
	if provider.NeedsPrice(j) && !j.Model.Price.Known() {
		rec.Warn("no_price", "limits.cost_usd has no effect: scripted answers cost nothing. To try the limit, set model.price.")
	}
	return provider.Scripted(ctx, script, usedTurns, j)
}

// API returns the job's model with answers from its API. It sends no request.
func API(j *job.Job, env settings.Environment, version string, rec *record.Record) (provider.Model, error) {
	m := j.Model
	endpoint := model.Endpoint{
		BaseURL: provider.BaseURL(j, env), Headers: m.Headers, UserAgent: "agent-ci/" + version, IdleLimit: idleLimit(m),
	}
	if err := setCredentials(&endpoint, m, env, rec.AddSecret); err != nil {
		return provider.Model{}, err
	}
	api, err := NewClient(m.Wire, endpoint)
	if err != nil {
		return provider.Model{}, err
	}
	profiles := provider.ProfilesFor(j, env)
	apiModel, err := provider.New(api, j, profiles, rec.Warn)
	apiModel.ForSubagent = func(a provider.Subagent) (provider.Model, error) {
		return provider.New(api, a.Job, profiles, rec.Warn)
	}
	return apiModel, err
}

// idleLimit returns how long a request may wait for the API's next byte. It is longer for the slow flex tier, and
// for answers that come in one piece.
func idleLimit(m job.Model) time.Duration {
	if m.ServiceTier == model.FlexTier || !m.Stream || slices.Contains(m.Chat, "no_stream") {
		return 15 * time.Minute
	}
	return 5 * time.Minute
}

// Problems returns the reasons why this machine cannot use the model's API: a missing key or identity, or an
// invalid address. It sends no request.
func Problems(j *job.Job, env settings.Environment) (all []error) {
	endpoint := model.Endpoint{BaseURL: provider.BaseURL(j, env)}
	if err := setCredentials(&endpoint, j.Model, env, func(string, string) {}); err != nil {
		all = append(all, err)
	}
	if _, err := NewClient(j.Model.Wire, endpoint); err != nil {
		all = append(all, err)
	}
	return all
}

// setCredentials sets an endpoint's credentials: an API key or the job's identity. It returns an error if they are
// missing. learn receives each secret of the identity.
func setCredentials(e *model.Endpoint, m job.Model, env settings.Environment, learn func(name, secret string)) error {
	if m.Auth == "oidc" {
		id, err := identity.New(identity.Options{Job: m.Identity, BaseURL: e.BaseURL, Env: env}, learn)
		if err != nil {
			return err
		}
		e.Workload, e.Transport = id.Workload(), id
		return nil
	}
	key, err := env.Key(m.APIKeyEnv)
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "no_api_key", "The model's key cannot be used: %v.", err).Because(err)
	}
	if key == "" && m.APIKeyEnv != "" {
		return outcome.Stopf(outcome.InvalidInput, "no_api_key",
			"There is no key for the model: set %s, or name another variable with model.api_key_env.", m.APIKeyEnv)
	}
	e.APIKey = key
	return nil
}

// NewClient returns a client for the Chat Completions API if wire is "chat", and for the Responses API otherwise.
func NewClient(wire string, e model.Endpoint) (api model.Responder, err error) {
	if wire == "chat" {
		api, err = chat.New(e)
	} else {
		api, err = responses.New(e)
	}
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "base_url", "%s; give a URL like https://api.openai.com/v1.", outcome.Sentence(err.Error())).Because(err)
	}
	return api, nil
}
