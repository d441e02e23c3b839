// Package remote exchanges data with another repository. It lists branches, clones, fetches, and
// pushes one commit to one branch. It makes sure that the token goes to its host only, that a
// branch moves only from an expected commit, and that errors say what to do. It also transfers the
// contents of Git LFS files.
//
// Remotes are https (http on loopback) or local paths. A push to a path runs that repository's
// hooks. The git program runs in a private git folder, or in none. It reads the user's and the
// machine's configuration, but no repository's.
package remote

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Remote is another repository and its credentials.
type Remote struct {
	// URL is https://…, http://… (with a token on loopback only), file://… or a path on this machine.
	URL string
	// Token is sent to an http(s) remote, as the password of the user x-access-token. It is sent to
	// no other host.
	Token string
	// Path is the PATH that git and its helper programs are found in. Commands must not be able to
	// write to its folders. Relative folders are ignored.
	Path string
}

// Name returns the URL without credentials, for messages.
func (r Remote) Name() string {
	return userinfo().ReplaceAllString(r.URL, "$1")
}

var userinfo = lazyregexp.New(`^([A-Za-z+]+://)[^/]*@`)

// Local returns the path of a remote on this machine. ok is false for any other remote.
func (r Remote) Local() (path string, ok bool) {
	if u, err := url.Parse(r.URL); err == nil && u.Scheme == "file" {
		return u.Path, u.Host == "" || u.Host == "localhost"
	}
	if r.URL == "" || strings.Contains(r.URL, "://") || isSCPLike(r.URL) {
		return "", false
	}
	return r.URL, true
}

// isSCPLike reports whether git reads text as host:path: there is a colon before the first slash.
func isSCPLike(text string) bool {
	host, _, found := strings.Cut(text, ":")
	return found && !strings.Contains(host, "/")
}

// target is a parsed remote.
type target struct {
	scheme         string // https, http or file
	address        string // without credentials; for file an absolute path
	host, origin   string // the only server that gets the credentials
	user, password string
}

// target parses the URL. The token has precedence over credentials in the URL.
func (r Remote) target() (target, error) {
	if path, local := r.Local(); local {
		absolute, err := filepath.Abs(path)
		return target{scheme: "file", address: absolute}, err
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme == "" {
		return target{}, fmt.Errorf("%q is not the URL of a git remote; write https://HOST/OWNER/NAME.git", r.Name())
	}
	t := target{scheme: u.Scheme, address: r.Name(), host: u.Scheme + "://" + u.Host, origin: origin.Of(u), user: u.User.Username()}
	t.password, _ = u.User.Password()
	if r.Token != "" {
		t.user, t.password = "x-access-token", r.Token
	}
	switch {
	case !isHTTP(u) || u.Host == "":
		return t, fmt.Errorf("git remotes of the kind %s:// are not used (%s); use https or a path", u.Scheme, r.Name())
	case strings.ContainsAny(t.user+t.password, "\r\n\x00"):
		return t, fmt.Errorf("%w: the credentials for %s have more than one line", ErrAuth, r.Name())
	case u.Scheme == "http" && t.password != "" && !isLoopback(u.Hostname()):
		return t, fmt.Errorf("%s would send the token in the clear; use https", r.Name())
	}
	return t, nil
}

// isHTTP reports whether a URL is http or https.
func isHTTP(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" }

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Branches returns the SHAs of a remote's branches by name. The map is empty for a repository without commits.
func Branches(ctx context.Context, r Remote) (map[string]string, error) {
	out, _, err := r.git(ctx, Store{}, []string{"ls-remote", "--quiet", "--heads"})
	if err != nil {
		return nil, r.describeError(ctx, "list the branches of", err)
	}
	branches := map[string]string{}
	for line := range strings.Lines(out) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "\trefs/heads/")
		branches[name] = id
	}
	return branches, nil
}
