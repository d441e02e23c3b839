package transcript

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Site is a repository on a forge. Its methods return addresses of pages, which are safe in
// Markdown and HTML. They return "" for anything unknown or invalid.
type Site struct {
	Server     string // https://github.com
	Repository string // OWNER/REPO
}

// sitePatterns are the permitted forms of an address's parts. They keep hostile text out of
// addresses.
type sitePatterns struct{ server, repository, issue, commit, page *regexp.Regexp }

var sitePatternCache = sync.OnceValue(func() sitePatterns {
	const server, repository = `https?://[\w.-]+(?::\d{1,5})?`, `[\w.-]+/[\w.-]+`
	return sitePatterns{
		server:     regexp.MustCompile(`^` + server + `$`),
		repository: regexp.MustCompile(`^` + repository + `$`),
		issue:      regexp.MustCompile(`^(` + repository + `)#([1-9]\d{0,9})$`),
		commit:     regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`),
		page: regexp.MustCompile(`^(` + server + `)/` + repository +
			`/(?:actions/runs/\d+(?:/attempts/\d+)?(?:#artifacts)?|issues/\d+|pull/\d+)$`),
	}
})

// Site returns the run's repository by the addresses in the transcript. Trust it no more than other
// text of the transcript.
func (v *View) Site() Site {
	pages := []string{v.Started.RunPage, v.Task.URL}
	for _, p := range v.PublishSteps {
		pages = append(pages, p.URL)
	}
	for _, page := range pages {
		if m := sitePatternCache().page.FindStringSubmatch(page); m != nil {
			return Site{Server: m[1], Repository: v.Workspace.Repository}
		}
	}
	return Site{}
}

// isValid reports whether server and repository may be parts of an address.
func (s Site) isValid() bool {
	return sitePatternCache().server.MatchString(s.Server) && sitePatternCache().repository.MatchString(s.Repository)
}

// Home returns the page of the repository.
func (s Site) Home() string {
	if !s.isValid() {
		return ""
	}
	return s.Server + "/" + s.Repository
}

// Issue returns the page of an issue, given as OWNER/REPO#N.
func (s Site) Issue(reference string) string {
	m := sitePatternCache().issue.FindStringSubmatch(reference)
	if m == nil || !sitePatternCache().server.MatchString(s.Server) {
		return ""
	}
	return s.Server + "/" + m[1] + "/issues/" + m[2]
}

// Pull returns the page of a pull request.
func (s Site) Pull(number int) string {
	if !s.isValid() || number <= 0 {
		return ""
	}
	return fmt.Sprintf("%s/%s/pull/%d", s.Server, s.Repository, number)
}

// Commit returns the page of a commit. sha must be complete.
func (s Site) Commit(sha string) string {
	if !s.isValid() || !sitePatternCache().commit.MatchString(sha) {
		return ""
	}
	return s.Server + "/" + s.Repository + "/commit/" + sha
}

// Page returns address if it is the page of a workflow run, issue or pull request on the site's
// server. If the site has no server, any server with https is permitted.
func (s Site) Page(address string) string {
	m := sitePatternCache().page.FindStringSubmatch(address)
	switch {
	case m == nil:
		return ""
	case s.Server == "" && strings.HasPrefix(address, "https:"), s.Server == m[1]:
		return address
	}
	return ""
}

// ShortSHA returns the first 12 characters of a commit's id.
func ShortSHA(sha string) string { return sha[:min(len(sha), 12)] }
