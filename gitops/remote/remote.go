// Package remote speaks the git protocol with another repository: it lists its
// branches, clones it and pushes one commit to one branch. It owns where a
// token may go, the lease under which a branch is moved, and what a refusal
// means for a person. It knows nothing of what is in a commit: the objects to
// push come as a packfile from the caller, so that shallow checkouts can push.
//
// Remotes are https (and http on loopback), ssh and paths on this machine. A
// push to a path runs git-receive-pack, and with it the hooks of that
// repository, where the caller names a git program; without one the objects
// and the branch are written by this package and no hook runs.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
)

// Remote is another repository, and what to show it.
type Remote struct {
	// URL is https://…, http://… (with a token on loopback only), ssh://…,
	// user@host:path, file://… or a path on this machine.
	URL string
	// Token goes to an http(s) remote as the password of x-access-token, and
	// to no other host. It is not used for ssh and paths.
	Token string
}

// Name is the URL without credentials, for people.
func (r Remote) Name() string {
	u, err := url.Parse(r.URL)
	if err != nil || u.User == nil {
		return userinfo.ReplaceAllString(r.URL, "$1") // what is no URL may still look like one
	}
	if u.Scheme != "ssh" {
		u.User = nil
		return u.String()
	}
	u.User = url.User(u.User.Username())
	return u.String()
}

var userinfo = regexp.MustCompile(`^([a-z+]+://)[^/@]*@`)

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

// endpoint checks the URL and reads it as go-git does.
func (r Remote) endpoint() (*transport.Endpoint, error) {
	if path, local := r.Local(); local {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find the remote %s: %w", path, err)
		}
		return &transport.Endpoint{Protocol: "file", Path: absolute}, nil
	}
	endpoint, err := transport.NewEndpoint(r.URL)
	if r.URL == "" || err != nil {
		return nil, fmt.Errorf("%q is not the URL of a git remote; write https://HOST/OWNER/NAME.git", r.Name())
	}
	return endpoint, r.checkProtocol(endpoint)
}

func (r Remote) checkProtocol(endpoint *transport.Endpoint) error {
	switch endpoint.Protocol {
	case "https":
		return nil
	case "ssh":
		if strings.HasPrefix(endpoint.Host, "-") || strings.HasPrefix(endpoint.Path, "-") || endpoint.Host == "" {
			return fmt.Errorf("%q is not the URL of an ssh remote; write ssh://git@HOST/OWNER/NAME.git", r.Name())
		}
		return nil
	case "http":
		if r.Token == "" && endpoint.Password == "" || loopback(endpoint.Host) {
			return nil
		}
		return fmt.Errorf("%s would send the token in the clear; use https", r.Name())
	}
	return fmt.Errorf("git remotes of the kind %s:// are not used (%s); use https, ssh or a path", endpoint.Protocol, r.Name())
}

func loopback(host string) bool {
	host = strings.Trim(host, "[]")
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// credentials are the token, else what the URL holds.
func (r Remote) credentials(endpoint *transport.Endpoint) (user, password string) {
	if r.Token != "" {
		return "x-access-token", r.Token
	}
	return endpoint.User, endpoint.Password
}

// List reads the names and ids of all refs, HEAD among them; none for a
// repository without commits.
func List(ctx context.Context, r Remote) (map[string]string, error) {
	session, advertised, err := r.advertised(ctx, "list the branches of")
	if errors.Is(err, ErrEmpty) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer session.Close()
	refs := make(map[string]string, len(advertised.References)+1)
	for name, id := range advertised.References {
		refs[name] = id.String()
	}
	if advertised.Head != nil {
		refs["HEAD"] = advertised.Head.String()
	}
	return refs, nil
}

// Branch returns the name and tip of a branch; of the one that HEAD names where branch is empty. tip is
// empty where the branch is missing, and both are where the repository has no commit.
func Branch(ctx context.Context, r Remote, branch string) (name, tip string, err error) {
	session, advertised, err := r.advertised(ctx, "list the branches of")
	if errors.Is(err, ErrEmpty) {
		return branch, "", nil
	}
	if err != nil {
		return "", "", err
	}
	defer session.Close()
	ref := plumbing.NewBranchReferenceName(branch)
	if branch == "" {
		ref = headBranch(advertised)
	}
	if commit, there := advertised.References[ref.String()]; there {
		tip = commit.String()
	}
	return ref.Short(), tip, nil
}

// advertised opens the side of a remote that gives objects, and reads which refs
// it has. The caller closes the session.
func (r Remote) advertised(ctx context.Context, doing string) (transport.UploadPackSession, *packp.AdvRefs, error) {
	session, err := r.uploadSession(ctx)
	if err != nil {
		return nil, nil, r.failed(ctx, doing, err)
	}
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		_ = session.Close()
		return nil, nil, r.failed(ctx, doing, err)
	}
	return session, refs, nil
}

// uploadSession opens the side of a remote that gives objects.
func (r Remote) uploadSession(ctx context.Context) (transport.UploadPackSession, error) {
	endpoint, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	switch endpoint.Protocol {
	case "file":
		return server.NewClient(loader{}).NewUploadPackSession(endpoint, nil)
	case "ssh":
		return dialSSH(ctx, transport.UploadPackServiceName, endpoint)
	}
	return httpUploadSession(r, endpoint)
}

// receiveSession opens the side of a remote that takes objects.
func (r Remote) receiveSession(ctx context.Context, o PushOptions) (transport.ReceivePackSession, error) {
	endpoint, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	switch {
	case endpoint.Protocol == "file" && o.Git != "":
		return receiveHere(ctx, o, endpoint.Path)
	case endpoint.Protocol == "file":
		return directReceiveSession(endpoint)
	case endpoint.Protocol == "ssh":
		return dialSSH(ctx, transport.ReceivePackServiceName, endpoint)
	}
	return httpReceiveSession(r, endpoint)
}
