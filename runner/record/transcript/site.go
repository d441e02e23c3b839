package transcript

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Site is a repository on a forge. Its methods return addresses of pages, which are safe in
// Markdown and HTML. They return "" for anything unknown or invalid.
type Site struct {
	Server     string // https://github.com
	Repository string // OWNER/REPO
}

const serverPattern, repositoryPattern = `https?://[\w.-]+(?::\d{1,5})?`, `[\w.-]+/[\w.-]+`

// The permitted forms of an address's parts. They keep hostile text out of addresses.
var (
	serverAddress  = lazyregexp.New(`^` + serverPattern + `$`)
	repositoryName = lazyregexp.New(`^` + repositoryPattern + `$`)
	issueReference = lazyregexp.New(`^(` + repositoryPattern + `)#([1-9]\d{0,9})$`)
	commitID       = lazyregexp.New(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	pageAddress    = lazyregexp.New(`^(` + serverPattern + `)/` + repositoryPattern +
		`/(?:actions/runs/\d+(?:/attempts/\d+)?(?:#artifacts)?|issues/\d+|pull/\d+)$`)
)

// Site returns the run's repository by the addresses in the transcript. Trust it no more than other
// text of the transcript.
func (v *View) Site() Site {
	pages := []string{v.Started.RunPage, v.Task.URL}
	for _, p := range v.PublishSteps {
		pages = append(pages, p.URL)
	}
	for _, page := range pages {
		if m := pageAddress().FindStringSubmatch(page); m != nil {
			return Site{Server: m[1], Repository: v.Workspace.Repository}
		}
	}
	return Site{}
}

// isValid reports whether server and repository may be parts of an address.
func (s Site) isValid() bool {
	return serverAddress().MatchString(s.Server) && repositoryName().MatchString(s.Repository)
}

// Home returns the page of the repository, or "" for an invalid site.
func (s Site) Home() string {
	if !s.isValid() {
		return ""
	}
	return s.Server + "/" + s.Repository
}

// Issue returns the page of an issue, given as OWNER/REPO#N, or "" for an invalid site or reference.
func (s Site) Issue(reference string) string {
	m := issueReference().FindStringSubmatch(reference)
	if m == nil || !serverAddress().MatchString(s.Server) {
		return ""
	}
	return s.Server + "/" + m[1] + "/issues/" + m[2]
}

// Pull returns the page of a pull request, or "" for an invalid site or number.
func (s Site) Pull(number int) string {
	if !s.isValid() || number <= 0 {
		return ""
	}
	return fmt.Sprintf("%s/%s/pull/%d", s.Server, s.Repository, number)
}

// Commit returns the page of a commit, or "" for an invalid site or an incomplete sha.
func (s Site) Commit(sha string) string {
	if !s.isValid() || !commitID().MatchString(sha) {
		return ""
	}
	return s.Server + "/" + s.Repository + "/commit/" + sha
}

// Page returns address if it is the page of a workflow run, issue or pull request on the site's
// server. If the site has no server, any server with https is permitted.
func (s Site) Page(address string) string {
	m := pageAddress().FindStringSubmatch(address)
	switch {
	case m == nil:
		return ""
	case s.Server == "" && strings.HasPrefix(address, "https:"), s.Server == m[1]:
		return address
	}
	return ""
}
