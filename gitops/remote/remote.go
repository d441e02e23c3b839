// Package remote has git talk with another repository: it lists its branches, clones it, fetches from it and
// pushes one commit to one branch. It owns where a token may go, the lease under which a branch is moved,
// and what a refusal means for a person. It exchanges the contents of Git LFS files, too.
//
// Remotes are https (and http on loopback) and paths on this machine. A push to a path runs the hooks of
// that repository. The git program runs in a git folder of ours, or in none, and reads the configuration of
// the user and of the machine, but that of no repository.
package remote

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

// Remote is another repository, and what to show it.
type Remote struct {
	// URL is https://…, http://… (with a token on loopback only), file://… or a path on this machine.
	URL string
	// Token goes to an http(s) remote as the password of x-access-token, and to no other host.
	Token string
	// Path is the PATH on which git is looked for, and git looks for programs. No folder of it may be
	// one that commands can write. Relative ones are left out.
	Path string
}

// Name is the URL without credentials, for people.
func (r Remote) Name() string {
	return userinfo.ReplaceAllString(r.URL, "$1")
}

var userinfo = regexp.MustCompile(`^([A-Za-z+]+://)[^/]*@`)

// Local is the path of a remote on this machine; ok says whether it is one.
func (r Remote) Local() (path string, ok bool) {
	if u, err := url.Parse(r.URL); err == nil && u.Scheme == "file" {
		return u.Path, u.Host == "" || u.Host == "localhost"
	}
	if r.URL == "" || strings.Contains(r.URL, "://") || scpLike(r.URL) {
		return "", false
	}
	return r.URL, true
}

// scpLike follows git's rule: a colon before the first slash makes a host.
func scpLike(text string) bool {
	host, _, found := strings.Cut(text, ":")
	return found && !strings.Contains(host, "/")
}

// target is a remote as git is told of it.
type target struct {
	scheme         string // https, http or file
	address        string // without credentials; an absolute path for file
	host, origin   string // who gets the credentials
	user, password string
}

// target checks the URL. Credentials are the token, else what the URL holds.
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
	if t.password, _ = u.User.Password(); r.Token != "" {
		t.user, t.password = "x-access-token", r.Token
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return t, fmt.Errorf("git remotes of the kind %s:// are not used (%s); use https or a path", u.Scheme, r.Name())
	case strings.ContainsAny(t.user+t.password, "\r\n\x00"):
		return t, fmt.Errorf("%w: the credentials for %s have more than one line", ErrAuth, r.Name())
	case u.Scheme == "http" && t.password != "" && !loopback(u.Hostname()):
		return t, fmt.Errorf("%s would send the token in the clear; use https", r.Name())
	}
	return t, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Branches returns the branches of a remote and the commits that they are at; none for a repository
// without commits.
func Branches(ctx context.Context, r Remote) (map[string]string, error) {
	out, _, err := r.git(ctx, Store{}, []string{"ls-remote", "--quiet", "--heads"})
	if err != nil {
		return nil, r.failed(ctx, "list the branches of", err)
	}
	branches := map[string]string{}
	for line := range strings.Lines(out) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "\trefs/heads/")
		branches[name] = id
	}
	return branches, nil
}
