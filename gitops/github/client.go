// Package github is the client of GitHub's REST and GraphQL APIs, on github.com and GitHub
// Enterprise Server. Its Client is a forge.Forge. It makes sure that the token goes to its server
// only, retries calls, and returns errors that say what to do. It knows nothing of jobs, runs or
// the content of pull requests.
//
// All text that it reads (titles, bodies, comments, names, error messages) comes from strangers. It
// passes the text on without interpretation.
package github

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
)

const defaultAPIURL = "https://api.github.com"

const (
	defaultUserAgent = "agent-ci"

	// maxReply is the largest reply in bytes. It is larger than a page of 100 comments of GitHub's
	// maximum length (65,536 characters).
	maxReply = 32 << 20

	// callTimeout bounds one call with all retries and waits.
	callTimeout = 5 * time.Minute
)

type Options struct {
	// APIURL is the root of the REST API; "" means api.github.com. For GitHub Enterprise Server it
	// is https://HOST/api/v3. Plain http is only accepted for hosts on this machine.
	APIURL string
	// ServerURL is the root of the web pages, where attached images are. It is checked when the
	// first image is downloaded.
	ServerURL string
	// Token is a personal, installation or Actions token. With "", calls are anonymous.
	Token string
	// UserAgent is sent with every request; "" means agent-ci.
	UserAgent string
	// Clock is for waits before a retry. Nil means the machine's.
	Clock transport.Clock
	// Pace is a file through which processes share GitHub's limit for creating content. "" means
	// that nothing limits the pace.
	Pace string
}

// Client sends calls to one API. It is a forge.Forge.
type Client struct {
	rest      *gh.Client
	graphQL   string
	serverURL string
	token     string
	scopes    *atomic.Pointer[string] // scopes of a classic token, once a reply has reported them
	clock     transport.Clock
}

// New returns a client. It sends no request. It fails unless APIURL is an https URL without user,
// query and fragment.
func New(o Options) (*Client, error) {
	api, err := parseAPIURL(o.APIURL)
	if err != nil {
		return nil, err
	}
	clock := cmp.Or[transport.Clock](o.Clock, transport.MachineClock{})
	scopes := &atomic.Pointer[string]{}
	replies := &transport.BoundedReplies{Base: transport.New(), Limit: maxReply, Scopes: scopes}
	authorized := &transport.Authorizer{Base: replies, Token: o.Token, MaySendTo: transport.SameOrigin(api)}
	var calls http.RoundTripper = &transport.Retrier{Base: authorized, Clock: clock}
	timeout := callTimeout
	if o.Pace != "" {
		calls, timeout = &transport.Pacer{Base: calls, File: o.Pace, Clock: clock}, timeout+transport.MaxPace
	}
	rest := gh.NewClient(&http.Client{Transport: calls, CheckRedirect: transport.FollowWithinHost, Timeout: timeout})
	rest.BaseURL = api
	rest.UserAgent = cmp.Or(o.UserAgent, defaultUserAgent)
	return &Client{rest: rest, graphQL: graphQLURL(api), serverURL: o.ServerURL, token: o.Token, scopes: scopes, clock: clock}, nil
}

// parseAPIURL parses the root URL of an API. The path of the result ends in a slash, as go-github
// needs it.
func parseAPIURL(raw string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(raw, defaultAPIURL))
	wrong := ""
	switch {
	case err != nil || u.Host == "":
		wrong = "is not a URL"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		wrong = "must hold no user, query or fragment"
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
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

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// graphQLURL returns the GraphQL endpoint that belongs to a REST API:
// https://docs.github.com/en/graphql/guides/forming-calls-with-graphql For Enterprise Server it is
// /api/graphql beside /api/v3.
func graphQLURL(api *url.URL) string {
	u := *api
	if root, enterprise := strings.CutSuffix(u.Path, "/api/v3/"); enterprise {
		u.Path = root + "/api/graphql"
	} else {
		u.Path += "graphql"
	}
	return u.String()
}
