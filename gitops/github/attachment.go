package github

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

const attachmentTimeout = 20 * time.Second

// attachments downloads attachments of issues and comments. It contacts only GitHub's own hosts,
// also after redirects, because strangers write these addresses. It is safe for concurrent use.
type attachments struct {
	server     *url.URL // root of the web pages
	repository string   // OWNER/REPO whose attachments are requested with the token
	client     *http.Client
}

// newAttachments returns a downloader for the attachments of a repository. server is the root URL
// of the web pages.
func newAttachments(server, repository, token string, base http.RoundTripper) (*attachments, error) {
	u, err := url.Parse(server)
	isSafe := func(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) }
	if err != nil || u.Host == "" || !isSafe(u) {
		return nil, &forge.Error{Kind: forge.Invalid, Message: "the address of GitHub's pages is no https URL", Remedy: "correct GITHUB_SERVER_URL"}
	}
	a := &attachments{server: u, repository: repository}
	a.client = &http.Client{
		Transport: &transport.Authorizer{Base: base, Token: token, MaySendTo: a.sendsTokenTo},
		Timeout:   attachmentTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if origin.CheckCount(via) != nil || !a.mayRedirectTo(req.URL) {
				return &origin.RedirectError{Why: "it leads away from GitHub, to " + req.URL.Host}
			}
			return nil
		},
	}
	return a, nil
}

// Paths of attachments on a server. Files in repositories are requested without the token, because
// an issue could name a file of a private repository.
var (
	attachmentPath  = lazyregexp.New(`^/user-attachments/assets/[0-9A-Za-z-]+$`)
	repositoryAsset = lazyregexp.New(`^/([\w.-]+/[\w.-]+)/assets/[0-9]+/[0-9A-Za-z-]+$`)
	otherPath       = lazyregexp.New(`^/(?:[\w.-]+/[\w.-]+/(?:raw|blob)/|storage/user/|raw/)`)
)

// contentHosts lists the hosts of github.com for content of pages. storeHosts lists those that
// attachments redirect to.
var (
	contentHosts = []string{
		"user-images.githubusercontent.com", "private-user-images.githubusercontent.com", "raw.githubusercontent.com",
		"camo.githubusercontent.com", "media.githubusercontent.com",
	}
	storeHosts = []string{"objects.githubusercontent.com", "github-production-user-asset-6210df.s3.amazonaws.com"}
)

// sendsTokenTo reports whether a request for u gets the token.
func (a *attachments) sendsTokenTo(u *url.URL) bool {
	if origin.Of(u) != origin.Of(a.server) {
		return false
	}
	m := repositoryAsset().FindStringSubmatch(u.Path)
	return attachmentPath().MatchString(u.Path) || m != nil && strings.EqualFold(m[1], a.repository)
}

// isImageURL reports whether u is an address of user images on GitHub.
func (a *attachments) isImageURL(u *url.URL) bool {
	switch {
	case u.User != nil || u.Scheme != a.server.Scheme:
		return false
	case origin.Of(u) == origin.Of(a.server):
		return path.Clean(u.Path) == u.Path &&
			(attachmentPath().MatchString(u.Path) || repositoryAsset().MatchString(u.Path) || otherPath().MatchString(u.Path))
	case strings.EqualFold(a.server.Host, "github.com"):
		return slices.Contains(contentHosts, strings.ToLower(u.Host))
	}
	return strings.HasSuffix(strings.ToLower(u.Host), "."+strings.ToLower(a.server.Host))
}

// mayRedirectTo reports whether a redirect may go to u.
func (a *attachments) mayRedirectTo(u *url.URL) bool {
	onGitHub := strings.EqualFold(a.server.Host, "github.com")
	isStore := u.User == nil && u.Scheme == "https" && slices.Contains(storeHosts, strings.ToLower(u.Host))
	return a.isImageURL(u) || onGitHub && isStore
}

// Attachment downloads an attachment of an issue or comment.
func (r *repository) Attachment(ctx context.Context, address string) ([]byte, error) {
	all, err := r.attachments()
	if err != nil {
		return nil, err
	}
	return all.fetch(ctx, address)
}

// fetch downloads an attachment of up to forge.MaxAttachment bytes. Its errors do not contain the
// address.
func (a *attachments) fetch(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || !a.isImageURL(u) {
		return nil, fmt.Errorf("agent-ci only reads images that were uploaded to %s", a.server.Host)
	}
	if strings.Contains(u.Path, "/blob/") && origin.Of(u) == origin.Of(a.server) {
		u.RawQuery = "raw=true" // request the file itself instead of its page
	}
	u.Fragment = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "image/*")
	req.Header.Set("User-Agent", defaultUserAgent)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", u.Host, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, forge.MaxAttachment+1))
	switch {
	case err != nil:
		return nil, withoutAddress(err)
	case len(data) > forge.MaxAttachment:
		return nil, fmt.Errorf("it has more than %d MiB", forge.MaxAttachment>>20)
	}
	return data, nil
}

// withoutAddress removes the URL from an error, because the URL of a redirect contains a signature.
func withoutAddress(err error) error {
	if failed, ok := err.(*url.Error); ok {
		return failed.Err
	}
	return err
}
