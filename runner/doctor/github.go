package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/sandboxcommand"
)

// GitHub says what the token is good for, as far as GitHub tells.
type GitHub struct {
	APIURL      string          `json:"api_url"`
	Repository  string          `json:"repository,omitempty"`
	Token       string          `json:"token"` // its kind; none where there is none
	Scopes      string          `json:"scopes,omitempty"`
	Permissions map[string]bool `json:"permissions,omitempty"` // in the repository
	Answer
}

func (d *Diagnosis) examineGitHub(ctx context.Context, p *sandboxcommand.Prepared, online bool) {
	g := &d.GitHub
	token := p.Environ.Token()
	api, server := github.Addresses(p.Environ.Get)
	g.APIURL, g.Token, g.Repository = api, github.TokenKind(token), repositoryName(p, server)
	if token == "" {
		d.note("github", "There is no GitHub token: runs commit here and publish nothing on GitHub.", "Set GITHUB_TOKEN; in Actions: env: {GITHUB_TOKEN: ${{ github.token }}}.")
	}
	if g.Repository == "" {
		d.note("github", "It is not known which repository on GitHub this is.", "Set repository.name or GITHUB_REPOSITORY, or give the checkout an origin there.")
	}
	if !online || g.Repository == "" {
		return
	}
	answer, header, body := ask(ctx, strings.TrimSuffix(g.APIURL, "/")+"/repos/"+g.Repository, token, map[string]string{"Accept": "application/vnd.github+json"})
	g.Answer, g.Scopes = answer, header.Get("X-OAuth-Scopes")
	var said struct {
		Permissions map[string]bool `json:"permissions"`
	}
	if json.Unmarshal(body, &said) == nil {
		g.Permissions = said.Permissions
	}
	d.judgeGitHub(token != "")
}

func repositoryName(p *sandboxcommand.Prepared, server string) string {
	origin := ""
	if checkout := p.Workspace.Checkout(); checkout != nil {
		origin = checkout.Origin()
	}
	return intake.RepositoryName(p.Job, p.Environ.Get("GITHUB_REPOSITORY"), origin, server)
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
