package credential

import (
	"fmt"
	"maps"
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
// target with terminated TLS; onlyCredentials limits the target to requests of its credentials. It does not
// modify r.
func (g *Guard) Exchange(r *http.Request, t reach.Target, onlyCredentials bool) (*Exchange, *Refusal) {
	exchanged, refusal := g.exchange(r, t, onlyCredentials)
	return exchanged, g.withRequest(r, refusal)
}

// exchange is Exchange, but its refusal lacks the description of the request. One of its results is nil.
func (g *Guard) exchange(r *http.Request, t reach.Target, onlyCredentials bool) (*Exchange, *Refusal) {
	out := &Exchange{URL: cloneURL(r.URL), Header: r.Header.Clone()}
	stripped := &Exchange{URL: cloneURL(r.URL), Header: r.Header.Clone()} // without the placeholders at proper places
	var uses []*Credential
	for i := range g.set {
		c := &g.set[i]
		if c.Denied || !c.isForTarget(t) || !c.replacePlaceholder(stripped, "") {
			continue
		}
		c.replacePlaceholder(out, c.Value)
		uses = append(uses, c)
		out.Uses = append(out.Uses, c.Name)
	}
	// Any placeholder that is left is misplaced.
	if refusal := g.findInRequest(r, stripped.URL, stripped.Header); refusal != nil {
		return nil, refusal
	}
	for _, c := range uses {
		if refusal := c.refuseUse(r, t); refusal != nil {
			return nil, refusal
		}
	}
	if refusal := g.refuseRequest(r, t, onlyCredentials, len(uses) > 0); refusal != nil {
		return nil, refusal
	}
	return out, nil
}

func cloneURL(u *url.URL) *url.URL {
	c := *u
	return &c
}

// refuseUse returns the reason to keep the credential out of a request, or nil.
func (c *Credential) refuseUse(r *http.Request, t reach.Target) *Refusal {
	if c.Fetch {
		if !c.permitsRequest(r, t) {
			return c.newRefusal("%s is for fetching with git from %s alone.", c.Name, c.scopesText())
		}
		return nil
	}
	if !c.scopeCovers(r, t) {
		return c.newRefusal("%s is for %s alone, not for other paths.", c.Name, c.scopesText())
	}
	if !slices.Contains(c.Methods, r.Method) {
		return c.newRefusal("%s is for %s alone, not for other methods.", c.Name, strings.Join(c.Methods, " and "))
	}
	return nil
}

// refuseRequest refuses a request because of the request itself, or returns nil. onlyCredentials limits the target to
// requests of its credentials; usesCredential means that the request contains a credential.
func (g *Guard) refuseRequest(r *http.Request, t reach.Target, onlyCredentials, usesCredential bool) *Refusal {
	names := g.set.Names(t)
	isPush := strings.Contains(strings.ToLower(fullyUnescaped(r.URL.RequestURI())), receivePack) // in its path or query
	fetchOnly := slices.ContainsFunc(g.set, func(c Credential) bool { return c.Fetch && !c.Denied && c.isForTarget(t) })
	if isPush && fetchOnly { // a credential with Fetch must not seem to allow it
		return &Refusal{Names: names, Reason: "The secret of this host is for fetching with git, not for pushing.", NoRemedy: true}
	}
	if !usesCredential && !onlyCredentials {
		return nil
	}
	if problem := ambiguousPath(r.URL.EscapedPath()); problem != "" {
		return &Refusal{Names: names, Reason: "The path of the request " + problem + ", so a server may read another path from it.", NoRemedy: true}
	}
	if override := overrideName(r); override != "" {
		return &Refusal{Names: names, Reason: "The first line of the request contradicts " + override + ".", NoRemedy: true}
	}
	if onlyCredentials && !slices.ContainsFunc(g.set, func(c Credential) bool { return !c.Denied && c.permitsRequest(r, t) }) {
		return &Refusal{Names: names, Reason: "The host is open only for the requests of a secret, and this is none."}
	}
	return nil
}

// permitsRequest reports whether host, path and method of a request match the credential.
func (c *Credential) permitsRequest(r *http.Request, t reach.Target) bool {
	if c.Fetch {
		return slices.ContainsFunc(c.Scopes, func(s Scope) bool { return s.Host.Allows(t) && s.isGitFetch(r) })
	}
	return c.scopeCovers(r, t) && slices.Contains(c.Methods, r.Method)
}

func (c *Credential) scopeCovers(r *http.Request, t reach.Target) bool {
	path := r.URL.EscapedPath()
	return slices.ContainsFunc(c.Scopes, func(s Scope) bool { return s.Host.Allows(t) && s.coversPath(path) })
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
	if s.coversPath(repository) {
		return true
	}
	const ending = ".git"
	if withoutEnding, ok := strings.CutSuffix(s.Path, ending); ok {
		return unescape(repository) == withoutEnding
	}
	return unescape(repository) == s.Path+ending
}

// overrideName names a header or parameter that makes some servers use another method, path or host.
// It returns "" if there is none.
func overrideName(r *http.Request) string {
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if normalized := strings.ToLower(strings.ReplaceAll(name, "_", "-")); isOverrideHeader(normalized) {
			return "its header " + normalized
		}
	}
	for pair := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		name, _, _ := strings.Cut(pair, "=")
		if normalized := strings.ReplaceAll(strings.ToLower(fullyUnescaped(name)), ".", "_"); normalized == "_method" || normalized == "x-http-method-override" {
			return "the parameter " + normalized
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
		slices.ContainsFunc([]string{"x-forwarded-", "x-original-", "x-rewrite-"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// fullyUnescaped unescapes text until nothing changes, up to maxEscapeLevels times.
func fullyUnescaped(text string) string {
	for range maxEscapeLevels {
		plain := unescape(text)
		if plain == text {
			return text
		}
		text = plain
	}
	return text
}

func (c *Credential) newRefusal(format string, args ...any) *Refusal {
	return &Refusal{Names: []string{c.Name}, Reason: fmt.Sprintf(format, args...)}
}

// scopesText lists the hosts and paths of the credential for a message.
func (c *Credential) scopesText() string {
	texts := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}
