package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/agent/identity"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Answer is an API's answer to a probe.
type Answer struct {
	Asked     bool   `json:"asked"` // nothing is asked unless a person wants it
	Reachable bool   `json:"reachable"`
	Status    int    `json:"status,omitempty"`
	Error     string `json:"error,omitempty"`
}

// ask sends one GET request and describes the answer. Header and body are empty without an answer.
func ask(ctx context.Context, address, key string, headers map[string]string) (Answer, http.Header, []byte) {
	response, body, err := onboard.Fetch(ctx, address, key, headers)
	if err != nil {
		return Answer{Asked: true, Error: err.Error()}, http.Header{}, nil
	}
	return Answer{Asked: true, Reachable: true, Status: response.StatusCode}, response.Header, body
}

// withoutPassword returns an address without user, password and query.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

type Model struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	KeyName string `json:"key_variable"`
	KeySet  bool   `json:"key_set"`
	Auth    string `json:"auth"`
	// Identity is the origin of the job's token for model.auth: oidc, or "" if unknown.
	Identity string `json:"identity,omitempty"`
	Answer
	Endpoint *Endpoint `json:"endpoint,omitempty"` // where it was asked
}

// examineModel describes the model's API. Online it asks the API for the list of its models, which tests
// the key, and then tests the endpoint.
func (d *Diagnosis) examineModel(ctx context.Context, p *sandboxcommand.Prepared, online bool) {
	m := &d.Model
	configured := p.Job.Model
	key, keyErr := p.Environ.Key(configured.APIKeyEnv)
	keyOrigin := "in " + configured.APIKeyEnv
	m.Name, m.Auth, m.KeyName, m.KeySet = configured.Name, configured.Auth, configured.APIKeyEnv, key != ""
	base := cmp.Or(configured.BaseURL, p.Environ.Get("OPENAI_BASE_URL"), model.DefaultBaseURL)
	m.BaseURL = p.Record.Redact(withoutPassword(base))
	if configured.Auth == "oidc" {
		keyOrigin = "that the identity of the job gave"
		key, keyErr = d.examineIdentity(ctx, p, base, online)
	}
	address, err := model.Endpoint{BaseURL: base}.Base()
	if keyErr != nil || err != nil || !online {
		return // examineReadiness or examineIdentity reports the error
	}
	m.Answer, _, _ = ask(ctx, address.JoinPath("models").String(), key, configured.Headers)
	switch {
	case !m.Reachable:
		d.addError("model", "The model's API at "+m.BaseURL+" does not answer: "+m.Error+".", "Check OPENAI_BASE_URL or model.base_url, and proxies and firewalls of this machine.")
	case m.Status == http.StatusUnauthorized || m.Status == http.StatusForbidden:
		d.addError("model", fmt.Sprintf("The model's API refuses the key %s (status %d).", keyOrigin, m.Status), "Set a key that is valid for this API.")
	case m.Status >= http.StatusInternalServerError:
		d.addWarning("model", fmt.Sprintf("The model's API answers with status %d.", m.Status), "")
	case key != "" || configured.APIKeyEnv == "": // a key is known, or none is needed
		d.examineEndpoint(ctx, p, model.Endpoint{BaseURL: base, APIKey: key})
	}
}

// examineIdentity finds out whether the machine provides an identity token for the CI job and, online,
// whether that token yields an API key. Offline, key is "".
func (d *Diagnosis) examineIdentity(ctx context.Context, p *sandboxcommand.Prepared, base string, online bool) (key string, err error) {
	m := &d.Model
	m.KeyName = ""
	jobIdentity, err := identity.New(identity.Options{Job: p.Job.Model.Identity, BaseURL: base, Env: p.Environ}, p.Record.AddSecret)
	if err != nil { // examineReadiness reports it
		return "", err
	}
	m.Identity = jobIdentity.DescribeSource()
	if !online {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if key, err = jobIdentity.Key(ctx); err != nil {
		m.Answer = Answer{Asked: true, Error: "there is no key"}
		d.addError("model", describeKeyFailure(err), "docs/how-to/keyless.md says what to set up.")
	}
	return key, err
}

// describeKeyFailure returns why no API key was issued, as a sentence.
func describeKeyFailure(err error) string {
	if failure, is := errors.AsType[*model.Failure](err); is {
		return failure.Stop().Message
	}
	return outcome.Sentence(err.Error()) + "."
}

// GitHub describes the token's permissions, as far as GitHub reports them.
type GitHub struct {
	APIURL      string          `json:"api_url"`
	Repository  string          `json:"repository,omitempty"`
	Token       string          `json:"token"` // its kind; none where there is none
	Scopes      string          `json:"scopes,omitempty"`
	Permissions map[string]bool `json:"permissions,omitempty"` // in the repository
	Answer
}

// examineGitHub describes the repository on GitHub and the token. Online it asks what the token may do there.
func (d *Diagnosis) examineGitHub(ctx context.Context, p *sandboxcommand.Prepared, online bool) {
	g := &d.GitHub
	token := p.Environ.Token()
	api, server := p.Environ.Forge()
	g.APIURL, g.Token = api, github.TokenKind(token)
	_, _, clientErr := publish.NewClient(p.Environ, d.AgentCI, token)
	d.addErrorOf(ctx, "github", clientErr)
	sources := intake.RepositorySources{Job: p.Job, Server: server}
	sources.Event.Repository = p.Environ.Get("GITHUB_REPOSITORY")
	if checkout := p.Workspace.Checkout(); checkout != nil {
		sources.Origin = checkout.Origin()
	}
	name, err := sources.Repository()
	d.addErrorOf(ctx, "github", err)
	g.Repository = name
	if token == "" {
		d.addWarning("github", "There is no GitHub token: runs commit here and publish nothing on GitHub.", "Set GITHUB_TOKEN; in Actions: env: {GITHUB_TOKEN: ${{ github.token }}}.")
	}
	if g.Repository == "" {
		d.addWarning("github", "It is not known which repository on GitHub this is"+intake.ForeignOrigin(sources.Origin, server)+".", "Set repository.name or GITHUB_REPOSITORY, or give the checkout an origin there.")
	}
	if !online || g.Repository == "" || clientErr != nil {
		return
	}
	answer, header, body := ask(ctx, strings.TrimSuffix(g.APIURL, "/")+"/repos/"+g.Repository, token, map[string]string{"Accept": "application/vnd.github+json"})
	g.Answer, g.Scopes = answer, header.Get("X-OAuth-Scopes")
	var repository struct {
		Permissions map[string]bool `json:"permissions"`
	}
	if json.Unmarshal(body, &repository) == nil {
		g.Permissions = repository.Permissions
	} else if g.Status == http.StatusOK {
		d.addError("github", "The server at "+g.APIURL+" is not GitHub's API: it answers without JSON.", "Check GITHUB_API_URL: it is https://HOST/api/v3 for GitHub Enterprise Server.")
	}
	d.addGitHubProblems(token != "")
}

// addGitHubProblems adds the problems that GitHub's answer shows.
func (d *Diagnosis) addGitHubProblems(hasToken bool) {
	g := d.GitHub
	switch {
	case !g.Reachable:
		d.addError("github", "GitHub's API at "+g.APIURL+" does not answer: "+g.Error+".", "Check GITHUB_API_URL, and proxies and firewalls of this machine.")
	case g.Status == http.StatusUnauthorized:
		d.addError("github", "GitHub refuses the token.", "It may have expired: make a new one.")
	case g.Status == http.StatusNotFound || g.Status == http.StatusForbidden:
		d.addError("github", fmt.Sprintf("The repository %s can't be read with it (status %d).", g.Repository, g.Status), "Give the token access to the repository: contents, pull requests and issues, read and write.")
	case g.Status == http.StatusOK && hasToken && g.Permissions != nil && !g.Permissions["push"]:
		d.addError("github", "The token may not write to "+g.Repository+".", "Give it contents: write and pull-requests: write.")
	}
}
