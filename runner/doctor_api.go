package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/sandboxcommand"
)

// Answer is what an API said when it was asked whether it is there.
type Answer struct {
	Asked     bool   `json:"asked"` // nothing is asked unless a person wants it
	Reachable bool   `json:"reachable"`
	Status    int    `json:"status,omitempty"`
	Error     string `json:"error,omitempty"`
}

// ModelIs says how the model would be asked.
type ModelIs struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	KeyName string `json:"key_variable"`
	KeySet  bool   `json:"key_set"`
	Answer
}

// GitHubIs says what the token is good for, as far as it tells.
type GitHubIs struct {
	APIURL      string          `json:"api_url"`
	Repository  string          `json:"repository,omitempty"`
	Token       string          `json:"token"` // its kind; none where there is none
	Scopes      string          `json:"scopes,omitempty"`
	Permissions map[string]bool `json:"permissions,omitempty"` // in the repository
	Answer
}

// defaultModelURL is where openai-go asks unless it is told otherwise.
const defaultModelURL = "https://api.openai.com/v1/"

func (d *Diagnosis) examineModel(ctx context.Context, s *sandboxcommand.Surroundings, online bool) {
	m := &d.Model
	asked := s.Job.Model
	key := s.Environ.Get(asked.APIKeyEnv)
	m.Name, m.KeyName, m.KeySet = asked.Name, asked.APIKeyEnv, key != ""
	base := cmp.Or(asked.BaseURL, s.Environ.Get("OPENAI_BASE_URL"), defaultModelURL)
	m.BaseURL = s.Record.Redact(withoutPassword(base))
	if !m.KeySet && asked.APIKeyEnv != "" {
		d.fault("model", "There is no key for the model: "+asked.APIKeyEnv+" is not set.", "Set "+asked.APIKeyEnv+", or name another variable with model.api_key_env.")
	}
	if !online {
		return
	}
	headers := map[string]string{}
	if key != "" {
		headers["Authorization"] = "Bearer " + key
	}
	for name, value := range asked.Headers {
		headers[name] = value
	}
	answer, _, _ := ask(ctx, strings.TrimSuffix(base, "/")+"/models", headers)
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

// tokenKinds are what GitHub's tokens begin with (docs.github.com, about
// authentication to GitHub).
var tokenKinds = []struct{ prefix, kind string }{
	{"github_pat_", "fine-grained personal access token"},
	{"ghp_", "classic personal access token"},
	{"ghs_", "installation token (of GitHub Actions or an App)"},
	{"ghu_", "user token of an App"},
	{"gho_", "OAuth token"},
}

func tokenKind(token string) string {
	if token == "" {
		return "none"
	}
	for _, k := range tokenKinds {
		if strings.HasPrefix(token, k.prefix) {
			return k.kind
		}
	}
	return "of a kind that is not known"
}

func (d *Diagnosis) examineGitHub(ctx context.Context, s *sandboxcommand.Surroundings, online bool) {
	g := &d.GitHub
	token := s.Environ.Token()
	api, server := gitHub(s.Environ)
	g.APIURL, g.Token = api, tokenKind(token)
	g.Repository = (&run{job: s.Job, env: s.Environ, checkout: s.Workspace.Checkout()}).repositoryName(server)
	if token == "" {
		d.note("github", "There is no GitHub token: runs commit here and publish nothing on GitHub.", "Set GITHUB_TOKEN; in Actions: env: {GITHUB_TOKEN: ${{ github.token }}}.")
	}
	if g.Repository == "" {
		d.note("github", "It is not known which repository on GitHub this is.", "Set repository.name or GITHUB_REPOSITORY, or give the checkout an origin there.")
	}
	if !online || g.Repository == "" {
		return
	}
	headers := map[string]string{"Accept": "application/vnd.github+json"}
	if token != "" {
		headers["Authorization"] = "Bearer " + token
	}
	answer, header, body := ask(ctx, strings.TrimSuffix(g.APIURL, "/")+"/repos/"+g.Repository, headers)
	g.Answer, g.Scopes = answer, header.Get("X-OAuth-Scopes")
	var said struct {
		Permissions map[string]bool `json:"permissions"`
	}
	if json.Unmarshal(body, &said) == nil {
		g.Permissions = said.Permissions
	}
	d.judgeGitHub(token != "")
}

func (d *Diagnosis) judgeGitHub(hasToken bool) {
	g := d.GitHub
	switch {
	case !g.Reachable:
		d.fault("github", "GitHub's API at "+g.APIURL+" does not answer: "+g.Error+".", "Check GITHUB_API_URL, and proxies and firewalls of this machine.")
	case g.Status == http.StatusUnauthorized:
		d.fault("github", "GitHub refuses the token.", "It may have expired: make a new one.")
	case g.Status == http.StatusNotFound || g.Status == http.StatusForbidden:
		d.fault("github", fmt.Sprintf("The repository %s can't be read with it (status %d).", g.Repository, g.Status), "Give the token access to the repository: contents, pull requests and issues, read and write.")
	case g.Status == http.StatusOK && hasToken && g.Permissions != nil && !g.Permissions["push"]:
		d.fault("github", "The token may not write to "+g.Repository+".", "Give it contents: write and pull-requests: write.")
	}
}

// ask gets a page once, with a limit of time and size. What the answer says of
// the error is the transport's, without the address.
func ask(ctx context.Context, address string, headers map[string]string) (Answer, http.Header, []byte) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	failed := func(err error) (Answer, http.Header, []byte) {
		if failure := (*url.Error)(nil); errors.As(err, &failure) { // the address may hold a password
			err = failure.Err
		}
		return Answer{Asked: true, Error: err.Error()}, http.Header{}, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return failed(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return failed(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return Answer{Asked: true, Reachable: true, Status: response.StatusCode}, response.Header, body
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
