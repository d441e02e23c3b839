package identity

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// jwt is a token with these claims, signed by nobody.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}

var named = job.Identity{Provider: "idp", ServiceAccount: "svc"}

// learned keeps what an identity tells of its secrets.
type learned struct {
	mu  sync.Mutex
	all []string
}

func (l *learned) learn(_, secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, secret)
}

func TestReportsMissingSettings(t *testing.T) {
	there, gone := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(there, nil, 0o600))
	asks := settings.Environment{requestURL + "=https://ci.example/token", requestToken + "=t"}
	for _, test := range []struct {
		name  string
		job   job.Identity
		base  string
		env   settings.Environment
		words string // empty for nothing
	}{
		{"all by the job", named, "", asks, ""},
		{"all by the environment", job.Identity{}, "", append(settings.Environment{providerVariable + "=idp", accountVariable + "=svc"}, asks...), ""},
		{"no provider", job.Identity{ServiceAccount: "svc"}, "", asks, "set model.identity.provider_id or OPENAI_IDENTITY_PROVIDER_ID"},
		{"no account", job.Identity{Provider: "idp"}, "", asks, "set model.identity.service_account_id or OPENAI_SERVICE_ACCOUNT_ID"},
		{"no permission", named, "", nil, "permissions: id-token: write"},
		{"no token to ask with", named, "", asks[:1], "permissions: id-token: write"},
		{"a service that is not confidential", named, "", settings.Environment{requestURL + "=http://ci.example/token", requestToken + "=t"}, "is no https address"},
		{"one on loopback", named, "", settings.Environment{requestURL + "=http://[::1]:1/token", requestToken + "=t"}, ""},
		{"a relative file", job.Identity{Provider: "idp", ServiceAccount: "svc", TokenFile: "token"}, "", asks, "absolute path"},
		{"a file by the environment", named, "", settings.Environment{settings.IdentityFileVariable + "=" + there}, ""},
		{"a file that is not there", named, "", settings.Environment{settings.IdentityFileVariable + "=" + gone}, "there is no file " + gone},
		{"a file that is missing", job.Identity{Provider: "idp", ServiceAccount: "svc", TokenFile: gone}, "", nil, "there is no file " + gone},
		{"OpenAI by name", named, "https://api.openai.com/v1", asks, ""},
		{"another API", named, "https://api.openai.com.example/v1", asks, "for OpenAI's own API alone"},
		{"no TLS", named, "http://api.openai.com/v1", asks, "for OpenAI's own API alone"},
		{"another port", named, "https://api.openai.com:8443/v1", asks, "for OpenAI's own API alone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := New(Options{Job: test.job, BaseURL: test.base, Env: test.env}, new(learned).learn)
			if test.words == "" {
				must.Do(t, err)
				if w := got.Workload(); w.IdentityProviderID != "idp" || w.ServiceAccountID != "svc" {
					t.Errorf("it is %+v", w)
				}
				return
			}
			stop, is := errors.AsType[*outcome.Stop](err)
			if !is || stop.Outcome != outcome.InvalidInput || !strings.Contains(stop.Message, test.words) {
				t.Errorf("err = %v, want %q", err, test.words)
			}
		})
	}
}

func TestRequestsTokenFromActions(t *testing.T) {
	good := jwt(`{"iss":"i"}`)
	for _, test := range []struct {
		name   string
		status int
		answer string
		kind   model.Kind // empty for none
		words  string
	}{
		{"a token", 200, `{"value":"` + good + `"}`, "", ""},
		{"no permission", 403, `{"message":"no"}`, model.Identity, "status 403"},
		{"busy", 429, "", model.ServerError, "status 429"},
		{"broken", 502, "", model.ServerError, "status 502"},
		{"a redirection", 302, "", model.Identity, "status 302"},
		{"something else", 200, "<html>", model.Identity, "answers with something else"},
		{"no token", 200, `{}`, model.Identity, "no JSON Web Token"},
		{"too much", 200, `{"value":"` + strings.Repeat("a", maxTokenBytes) + `"}`, model.Identity, "answers with something else"},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.URL.Path != "/token" || r.URL.Query().Get("v") != "2" || r.URL.Query().Get("audience") != "https://api.openai.com/v1" || r.Header.Get("Authorization") != "Bearer ask" {
					t.Errorf("it was asked for %s by %v", r.URL, r.Header)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.answer)
			}))
			defer server.Close()
			known := new(learned)
			i := must.Get(New(Options{Job: named, Env: settings.Environment{requestURL + "=" + server.URL + "/token?v=2", requestToken + "=ask"}}, known.learn))(t)
			got, err := i.GetToken(t.Context(), nil)
			if test.kind == "" {
				if err != nil || got != good {
					t.Fatalf("it is %q, %v", got, err)
				}
				must.Same(t, []string{good}, known.all, "learned")
			} else if failure, is := errors.AsType[*model.Failure](err); !is || failure.Kind != test.kind || !strings.Contains(err.Error(), test.words) || got != "" {
				t.Errorf("it is %q, %v, want %s, %q", got, err, test.kind, test.words)
			}
			must.Same(t, 1, asked, "it was asked")
		})
	}
}

func TestFailsWithoutActions(t *testing.T) {
	i := must.Get(New(Options{Job: named, Env: settings.Environment{requestURL + "=http://127.0.0.1:1", requestToken + "=ask"}}, new(learned).learn))(t)
	_, err := i.GetToken(t.Context(), nil)
	if failure, is := errors.AsType[*model.Failure](err); !is || !failure.Temporary() {
		t.Errorf("err = %v", err)
	}
}

func TestRereadsTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	i := must.Get(New(Options{Job: job.Identity{Provider: "idp", ServiceAccount: "svc", TokenFile: path}}, new(learned).learn))(t)
	for _, test := range []struct{ content, want, words string }{
		{jwt(`{"a":1}`) + "\n", jwt(`{"a":1}`), ""},
		{jwt(`{"a":2}`), jwt(`{"a":2}`), ""},
		{"", "", "it has 1 parts, not 3"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----", "", "it has 1 parts, not 3"},
		{"a.b.", "", "a part is not base64"},
		{jwt("no claims"), "", "its claims are no JSON"},
		{strings.Repeat("a", maxTokenBytes) + "." + jwt("{}"), "", "no JSON Web Token"},
	} {
		must.Do(t, os.WriteFile(path, []byte(test.content), 0o600))
		got, err := i.GetToken(t.Context(), nil)
		if got != test.want || (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) {
			t.Errorf("of %.20q it is %.20q, %v", test.content, got, err)
		}
	}
	must.Do(t, os.Remove(path))
	must.Fail(t, "cannot be read", must.Err(i.GetToken(t.Context(), nil)))
}
