// Package origin has what all connections to a forge share: the transport, the error for redirects that are not
// followed, and the origins of URLs. A token may only be sent to its own origin.
package origin

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/reach"
)

const connectTimeout = 15 * time.Second

// NewDialer returns a dialer with the timeouts of this package.
func NewDialer() *net.Dialer {
	return &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
}

// NewTransport returns a transport that uses the proxy of the environment. It waits up to headerTimeout for the first
// byte of a reply.
func NewTransport(headerTimeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: NewDialer().DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: headerTimeout, OnProxyConnectResponse: reach.RefusedByProxy,
	}
}

// RedirectError reports a redirect that is not followed.
type RedirectError struct{ Why string }

func (e *RedirectError) Error() string { return "redirect not followed: " + e.Why }

// CheckCount returns a *RedirectError after too many redirects of one request.
func CheckCount(via []*http.Request) error {
	const most = 5
	if len(via) > most {
		return &RedirectError{"more than five in a row"}
	}
	return nil
}

// Of returns scheme, host and port of a URL, with the default port of the scheme (RFC 6454, section
// 4). URLs of one origin have equal results.
func Of(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
