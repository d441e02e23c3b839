package identity

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/openai/openai-go/v3/auth"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Options configure the identity of a run.
type Options struct {
	Job job.Identity
	// BaseURL is the API's address. Only OpenAI's is accepted; empty means OpenAI.
	BaseURL string
	Env     settings.Environment
}

// Identity is the workload identity of a run, which gets keys for the model's API. The first request fetches a key. It is
// the source of the job's tokens, and the RoundTripper for requests to the API and to the token exchange.
type Identity struct {
	provider, account string
	source            tokenSource
	learn             func(name, secret string)

	mu     sync.Mutex
	claims claims // of the last token
}

// Variables for settings that the job does not set. OpenAI's own libraries use the same names.
const (
	providerVariable = "OPENAI_IDENTITY_PROVIDER_ID"
	accountVariable  = "OPENAI_SERVICE_ACCOUNT_ID"
)

// New returns the identity that the job and the environment describe. It uses no network. If a setting or the
// token file is missing, the error is an outcome.Stop that names it. learn receives each secret before it is used:
// the job's token, and each key. It is called from several goroutines.
func New(o Options, learn func(name, secret string)) (*Identity, error) {
	if !job.IsOpenAI(o.BaseURL) {
		return nil, outcome.Stopf(outcome.InvalidInput, "base_url",
			"OPENAI_BASE_URL is not https://api.openai.com/v1, and keys by model.auth: oidc are for OpenAI's own API alone; unset it, or use model.auth: key.")
	}
	i := &Identity{learn: learn, provider: cmp.Or(o.Job.Provider, o.Env.Get(providerVariable)), account: cmp.Or(o.Job.ServiceAccount, o.Env.Get(accountVariable))}
	for _, setting := range []struct{ value, key, variable string }{
		{i.provider, "model.identity.provider_id", providerVariable},
		{i.account, "model.identity.service_account_id", accountVariable},
	} {
		if setting.value == "" {
			return nil, missingSettingStop("it is not said as whom the job asks for a key; set %s or %s to what OpenAI shows where the identity provider is set up", setting.key, setting.variable)
		}
	}
	var err error
	i.source, err = findSource(o.Job, o.Env)
	return i, err
}

// missingSettingStop returns the error that ends a run without the settings to get a key.
func missingSettingStop(format string, args ...any) error {
	return outcome.Stopf(outcome.InvalidInput, "no_identity", "model.auth is oidc, and "+format+".", args...)
}

// Workload returns the identity in the form that openai-go expects.
func (i *Identity) Workload() *auth.WorkloadIdentity {
	return &auth.WorkloadIdentity{IdentityProviderID: i.provider, ServiceAccountID: i.account, Provider: i}
}

// DescribeSource returns the name of the token's source for messages.
func (i *Identity) DescribeSource() string { return i.source.name }

// Key exchanges the job's identity token for a new API key.
func (i *Identity) Key(ctx context.Context) (string, error) {
	workload, err := auth.NewWorkloadIdentityAuth(*i.Workload())
	if err != nil {
		return "", err
	}
	return workload.GetToken(ctx, &http.Client{Transport: i})
}
