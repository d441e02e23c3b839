package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/sandboxcommand"
)

// Model says how the model would be asked.
type Model struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	KeyName string `json:"key_variable"`
	KeySet  bool   `json:"key_set"`
	Answer
}

func (d *Diagnosis) examineModel(ctx context.Context, p *sandboxcommand.Prepared, online bool) {
	m := &d.Model
	asked := p.Job.Model
	key := p.Environ.Get(asked.APIKeyEnv)
	m.Name, m.KeyName, m.KeySet = asked.Name, asked.APIKeyEnv, key != ""
	base := cmp.Or(asked.BaseURL, p.Environ.Get("OPENAI_BASE_URL"), model.DefaultBaseURL)
	m.BaseURL = p.Record.Redact(withoutPassword(base))
	if !m.KeySet && asked.APIKeyEnv != "" {
		d.fault("model", "There is no key for the model: "+asked.APIKeyEnv+" is not set.", "Set "+asked.APIKeyEnv+", or name another variable with model.api_key_env.")
	}
	if !online {
		return
	}
	answer, _, _ := ask(ctx, strings.TrimSuffix(base, "/")+"/models", key, asked.Headers)
	m.Answer = answer
	switch {
	case !answer.Reachable:
		d.fault("model", "The model's API at "+m.BaseURL+" does not answer: "+answer.Error+".", "Check OPENAI_BASE_URL or model.base_url, and proxies and firewalls of this machine.")
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		d.fault("model", fmt.Sprintf("The model's API refuses the key in %s (status %d).", asked.APIKeyEnv, answer.Status), "Set a key that is valid for this API.")
	case answer.Status >= http.StatusInternalServerError:
		d.note("model", fmt.Sprintf("The model's API answers with status %d.", answer.Status), "")
	}
}
