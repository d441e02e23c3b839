package credential

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Exchange is the request to send to the host, with the values of credentials.
type Exchange struct {
	URL    *url.URL
	Header http.Header
	Uses   []string // names of the credentials in the request
}

// Exchange returns the request with values in place of placeholders, or a refusal. It expects a
// target with terminated TLS; bound limits the target to requests of its credentials. It does not
// modify r.
func (g *Guard) Exchange(r *http.Request, t reach.Target, bound bool) (*Exchange, *Refusal) {
	x, refusal := g.exchange(r, t, bound)
	return x, g.withRequest(r, refusal)
}

// exchange is Exchange, except that its refusal does not describe the request.
func (g *Guard) exchange(r *http.Request, t reach.Target, bound bool) (*Exchange, *Refusal) {
	// left is the request without its correctly placed placeholders. Any other placeholder is misplaced.
	left := &Exchange{URL: clone(r.URL), Header: r.Header.Clone()}
	out := &Exchange{URL: clone(r.URL), Header: r.Header.Clone()}
	var uses []*Credential
	for i := range g.set {
		c := &g.set[i]
		if c.Denied || !c.isForTarget(t) || !c.put(left, "") {
			continue
		}
		c.put(out, c.Value)
		uses = append(uses, c)
		out.Uses = append(out.Uses, c.Name)
	}
	if refusal := g.inRequest(r, left.URL, left.Header); refusal != nil {
		return nil, refusal
	}
	for _, c := range uses {
		if refusal := c.refuse(r, t); refusal != nil {
			return nil, refusal
		}
	}
	if refusal := g.refuse(r, t, bound, len(uses) > 0); refusal != nil {
		return nil, refusal
	}
	return out, nil
}

func clone(u *url.URL) *url.URL {
	c := *u
	return &c
}

// refuse returns the reason to keep the credential out of a request, or nil.
func (c *Credential) refuse(r *http.Request, t reach.Target) *Refusal {
	if c.Fetch {
		if !c.fits(r, t) {
			return c.refusal("%s is for fetching with git from %s alone.", c.Name, c.shownScopes())
		}
		return nil
	}
	if !c.scopeCovers(r, t) {
		return c.refusal("%s is for %s alone, not for other paths.", c.Name, c.shownScopes())
	}
	if !slices.Contains(c.Methods, r.Method) {
		return c.refusal("%s is for %s alone, not for other methods.", c.Name, strings.Join(c.Methods, " and "))
	}
	return nil
}

// refuse refuses a request because of the request itself, or returns nil. bound limits the target to
// requests of its credentials; used means that the request contains a credential.
func (g *Guard) refuse(r *http.Request, t reach.Target, bound, used bool) *Refusal {
	names := g.set.Names(t)
	// A push names receive-pack in its path or query. A credential with Fetch must not seem to allow it.
	if strings.Contains(strings.ToLower(fullyUnescaped(r.URL.RequestURI())), receivePack) && slices.ContainsFunc(g.set, func(c Credential) bool { return c.Fetch && !c.Denied && c.isForTarget(t) }) {
		return &Refusal{Names: names, Reason: "The secret of this host is for fetching with git, not for pushing.", NoRemedy: true}
	}
	if !used && !bound {
		return nil
	}
	if problem := ambiguousPath(r.URL.EscapedPath()); problem != "" {
		return &Refusal{Names: names, Reason: "The path of the request " + problem + ", so a server may read another path from it.", NoRemedy: true}
	}
	if override := overrideName(r); override != "" {
		return &Refusal{Names: names, Reason: "The first line of the request contradicts " + override + ".", NoRemedy: true}
	}
	if bound && !slices.ContainsFunc(g.set, func(c Credential) bool { return !c.Denied && c.fits(r, t) }) {
		return &Refusal{Names: names, Reason: "The host is open only for the requests of a secret, and this is none."}
	}
	return nil
}

// fits reports whether host, path and method of a request match the credential.
func (c *Credential) fits(r *http.Request, t reach.Target) bool {
	if c.Fetch {
		return slices.ContainsFunc(c.Scopes, func(s Scope) bool { return s.Host.Allows(t) && s.isGitFetch(r) })
	}
	return c.scopeCovers(r, t) && slices.Contains(c.Methods, r.Method)
}

func (c *Credential) scopeCovers(r *http.Request, t reach.Target) bool {
	path := r.URL.EscapedPath()
	return slices.ContainsFunc(c.Scopes, func(s Scope) bool { return s.Host.Allows(t) && s.covers(path) })
}

const receivePack = "git-receive-pack"

// isGitFetch reports whether a request is one of the two of a git fetch from the scope's repository
// (gitprotocol-http), with or without .git in its name.
func (s Scope) isGitFetch(r *http.Request) bool {
	path, query := r.URL.EscapedPath(), r.URL.RawQuery
	var repository string
	var ok bool
	switch {
	case r.Method == http.MethodGet && query == "service=git-upload-pack":
		repository, ok = strings.CutSuffix(path, "/info/refs")
	case r.Method == http.MethodPost && query == "" && !r.URL.ForceQuery:
		repository, ok = strings.CutSuffix(path, "/git-upload-pack")
	}
	if !ok || strings.Contains(strings.ToLower(path), "%2f") {
		return false
	}
	if s.covers(repository) {
		return true
	}
	const ending = ".git"
	if named, ok := strings.CutSuffix(s.Path, ending); ok {
		return unescape(repository) == named
	}
	return unescape(repository) == s.Path+ending
}

// overrideName names a header or parameter that makes some servers use another method, path or host.
// It returns "" if there is none.
func overrideName(r *http.Request) string {
	for name := range r.Header {
		if dashed := strings.ToLower(strings.ReplaceAll(name, "_", "-")); isOverrideHeader(dashed) {
			return "its header " + dashed
		}
	}
	for pair := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		name, _, _ := strings.Cut(pair, "=")
		if plain := strings.ReplaceAll(strings.ToLower(fullyUnescaped(name)), ".", "_"); plain == "_method" || plain == "x-http-method-override" {
			return "the parameter " + plain
		}
	}
	return ""
}

// isOverrideHeader reports whether a header overrides method, path or host of a request. Proxies use
// such headers to send the original request to a server. name is in lower case.
func isOverrideHeader(name string) bool {
	switch name {
	case "x-forwarded-for", "x-forwarded-proto":
		return false
	case "x-http-method", "x-host", "forwarded", "x-envoy-original-path":
		return true
	}
	return strings.HasSuffix(name, "-override") ||
		slices.ContainsFunc([]string{"x-forwarded-", "x-original-", "x-rewrite-"}, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// fullyUnescaped unescapes text until nothing changes, up to maxEscapes times.
func fullyUnescaped(text string) string {
	for range maxEscapes {
		plain := unescape(text)
		if plain == text {
			return text
		}
		text = plain
	}
	return text
}

func (c *Credential) refusal(format string, args ...any) *Refusal {
	return &Refusal{Names: []string{c.Name}, Reason: fmt.Sprintf(format, args...)}
}

func (c *Credential) shownScopes() string {
	texts := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}
