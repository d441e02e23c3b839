// Package github speaks to the GitHub REST and GraphQL APIs of github.com and
// of GitHub Enterprise Server: its Client is a forge.Forge. It owns where the
// token may go, which failures are tried again, and what a failure means for a
// person. It knows nothing of jobs, runs, or what a pull request says.
//
// Everything it reads (titles, bodies, comments, names, error messages) was
// written by strangers and is handed on as text without any meaning.
package github

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const DefaultAPIURL = "https://api.github.com"

const (
	defaultUserAgent = "agent-ci"

	// callTimeout is the backstop for one call with all its attempts and waits.
	callTimeout = 5 * time.Minute
)

type Options struct {
	// APIURL is the root of the REST API; "" means DefaultAPIURL. For GitHub
	// Enterprise Server it is https://HOST/api/v3. Plain http is taken for
	// loopback hosts only.
	APIURL string
	// ServerURL is the root of the web pages, where people attach images. It is
	// looked at when one of these is fetched.
	ServerURL string
	// Token is a personal, installation or Actions token; "" asks anonymously.
	Token string
	// UserAgent is sent with every request; "" means agent-ci.
	UserAgent string
	// Wait is how the client waits before it tries something again; nil means
	// that the time passes.
	Wait func(context.Context, time.Duration) error
	// Pace is a file by which all processes that name it create content no faster than GitHub takes
	// it; "" for none.
	Pace string
	Now  func() time.Time // nil means time.Now
}

// Client makes calls to one API: it is a forge.Forge.
type Client struct {
	rest      *gh.Client
	graphQL   string
	serverURL string
	token     string
	scopes    *atomic.Pointer[string] // of a classic token, once a reply told them
	wait      func(context.Context, time.Duration) error
}

// New makes a client. It makes no request; it fails for an APIURL that is not
// an https URL without user, query and fragment.
func New(o Options) (*Client, error) {
	api, err := parseAPIURL(o.APIURL)
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(o.Token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &forge.Error{
			Kind: forge.Unauthorized, Message: "the GitHub token holds a space, a line break or a control character",
			Remedy: "set GITHUB_TOKEN to the token alone",
		}
	}
	wait := o.Wait
	if wait == nil {
		wait = waitFor
	}
	scopes := &atomic.Pointer[string]{}
	replies := &replyTransport{base: defaultTransport(), limit: maxReply, scopes: scopes}
	authorized := &tokenTransport{base: replies, token: token, may: isOfOrigin(api)}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	var calls http.RoundTripper = &retryTransport{base: authorized, wait: wait, now: now}
	timeout := callTimeout
	if o.Pace != "" {
		calls, timeout = &pace{base: calls, file: o.Pace, wait: wait, now: now}, timeout+longestPace
	}
	rest := gh.NewClient(&http.Client{Transport: calls, CheckRedirect: checkRedirect, Timeout: timeout})
	rest.BaseURL = api
	rest.UserAgent = cmp.Or(o.UserAgent, defaultUserAgent)
	return &Client{rest: rest, graphQL: graphQLURL(api), serverURL: o.ServerURL, token: token, scopes: scopes, wait: wait}, nil
}

func newDialer() *net.Dialer {
	return &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
}

func defaultTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           newDialer().DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4,
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: time.Minute,
	}
}

// parseAPIURL reads the root of an API; its path ends in a slash, as go-github
// wants it.
func parseAPIURL(raw string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(raw, DefaultAPIURL))
	wrong := ""
	switch {
	case err != nil || u.Host == "":
		wrong = "is not a URL"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		wrong = "must hold no user, query or fragment"
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		wrong = fmt.Sprintf("%s://%s would send the token in the clear", u.Scheme, u.Host)
	}
	if wrong != "" {
		return nil, &forge.Error{
			Kind: forge.Invalid, Message: "the GitHub API URL " + wrong,
			Remedy: "set it to https://api.github.com, or to https://HOST/api/v3 for GitHub Enterprise Server",
		}
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	u.RawPath = ""
	return u, nil
}

func loopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// graphQLURL is where the server of a REST API has its GraphQL API:
// https://docs.github.com/en/graphql/guides/forming-calls-with-graphql and,
// for Enterprise Server, /api/graphql beside /api/v3.
func graphQLURL(api *url.URL) string {
	u := *api
	if root, enterprise := strings.CutSuffix(u.Path, "/api/v3/"); enterprise {
		u.Path = root + "/api/graphql"
	} else {
		u.Path += "graphql"
	}
	return u.String()
}
