package access

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Azure has its version of an API there.
func TestRequestsKeepQueryOfAddress(t *testing.T) {
	for _, wire := range []string{"", "chat"} {
		var asked string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = r.URL.String(); w.WriteHeader(400) }))
		defer server.Close()
		api := must.Get(NewClient(wire, model.Endpoint{BaseURL: server.URL + "/v1?api-version=2025-04-01&a=b"}))(t)
		_, _ = api.Respond(t.Context(), model.Request{}, model.NoObserver{})
		address := must.Get(url.Parse(asked))(t)
		must.Same(t, map[string]string{"": "/v1/responses", "chat": "/v1/chat/completions"}[wire], address.Path, wire)
		must.Same(t, "a=b&api-version=2025-04-01", address.Query().Encode(), wire)
	}
}

func TestAPINeedsKeyAndURL(t *testing.T) {
	for _, test := range []struct {
		name          string
		model         job.Model
		env           settings.Environment
		reason, words string // empty for no error
	}{
		{"a key and a URL", job.Model{APIKeyEnv: "KEY"}, settings.Environment{"KEY=k", "OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "", ""},
		{"as a chat", job.Model{APIKeyEnv: "KEY", Wire: "chat"}, settings.Environment{"KEY=k", "OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "", ""},
		{"a server that wants no key", job.Model{BaseURL: "http://127.0.0.1:1/v1"}, nil, "", ""},
		{"a key in quotes", job.Model{APIKeyEnv: "KEY"}, settings.Environment{`KEY="sk-1"`}, "no_api_key", "the value of KEY holds a line break, a quote"},
		{"a text that is no key", job.Model{APIKeyEnv: "KEY", BaseURL: "http://127.0.0.1:1/v1"}, settings.Environment{"KEY=not needed"}, "", ""},
		{"a key of two lines", job.Model{APIKeyEnv: "KEY"}, settings.Environment{"KEY=sk\n1"}, "no_api_key", "set it to the key alone"},
		{"no key", job.Model{APIKeyEnv: "KEY"}, settings.Environment{"KEY=", "OTHER=k"}, "no_api_key", "set KEY, or name"},
		{"a URL that is none", job.Model{BaseURL: "ftp//host"}, nil, "base_url", "give a URL like https://api.openai.com/v1."},
		{"one in the clear", job.Model{BaseURL: "http://models.example.com/v1"}, nil, "base_url", "is http to the public host models.example.com, where others could read the key"},
		{"as a chat, too", job.Model{BaseURL: "ftp//host", Wire: "chat"}, nil, "base_url", "give a URL like"},
		{"the job's URL before the environment's", job.Model{BaseURL: "ftp//host"}, settings.Environment{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "base_url", "is not an http or https URL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &job.Job{Model: test.model}
			j.Model.Name = "gpt-5"
			got, err := API(j, test.env, "1.2.3", record.New("", nil))
			if test.reason != "" {
				outcometest.Want(t, err, "invalid_input/"+test.reason, test.words)
				return
			}
			must.Do(t, err)
			if _, chat := got.Responder.(*chat.Client); chat != (test.model.Wire == "chat") {
				t.Errorf("it is a %T", got.Responder)
			}
			must.Same(t, true, got.HasAnswers == nil, "its answers do not end")
		})
	}
}
