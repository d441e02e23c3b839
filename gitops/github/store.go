package github

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops/github/transport"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// newStorageClient returns an anonymous client for the hosts that store archives. It uses plain http, or
// addresses of this machine and its network, only if the API does so, too.
func (c *Client) newStorageClient() *http.Client {
	dialer := origin.NewDialer()
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return c.checkStorageAddress(ctx, at.Addr())
	}
	direct := transport.New()
	direct.Proxy, direct.DialContext = nil, dialer.DialContext
	anonymous := &transport.Authorizer{Base: &storageRoundTripper{direct: direct, proxied: transport.New()}, MaySendTo: func(*url.URL) bool { return false }}
	return &http.Client{
		Transport: &transport.Retrier{Base: anonymous, Clock: c.clock},
		Timeout:   downloadTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			return cmp.Or(origin.CheckCount(via), c.checkStorageURL(req.Context(), req.URL))
		},
	}
}

// storageRoundTripper connects directly, or through the proxy of the environment. The address of the
// proxy is not restricted.
type storageRoundTripper struct{ direct, proxied http.RoundTripper }

// RoundTrip sends a request directly, or through the proxy of the environment.
func (t *storageRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(req); proxy != nil || err != nil {
		return t.proxied.RoundTrip(req)
	}
	return t.direct.RoundTrip(req)
}

// checkStorageURL returns an error for a URL that an archive must not be fetched from.
func (c *Client) checkStorageURL(ctx context.Context, place *url.URL) error {
	mayBeHTTP := place.Scheme == "http" && c.rest.BaseURL.Scheme == "http" && isLoopback(place.Hostname())
	switch {
	case place.User != nil:
		return &origin.RedirectError{Why: "its address names a user"}
	case place.Host == "" || place.Scheme != "https" && !mayBeHTTP:
		return &origin.RedirectError{Why: fmt.Sprintf("%s://%s is no https address", place.Scheme, place.Host)}
	}
	if at, err := netip.ParseAddr(place.Hostname()); err == nil { // check here, because a proxy would connect without checkStorageAddress
		return c.checkStorageAddress(ctx, at)
	}
	return nil
}

// checkStorageAddress returns an error for an address outside the public internet, unless the API itself has
// such an address.
func (c *Client) checkStorageAddress(ctx context.Context, at netip.Addr) error {
	if isPublic(at) {
		return nil
	}
	own, err := net.DefaultResolver.LookupNetIP(ctx, "ip", c.rest.BaseURL.Hostname())
	if err == nil && slices.ContainsFunc(own, func(addr netip.Addr) bool { return !isPublic(addr) }) {
		return nil
	}
	return &origin.RedirectError{Why: fmt.Sprintf("%s is an address of this machine or its network, and the API's is not", at)}
}

// isPublic reports whether an address belongs to the public internet.
func isPublic(addr netip.Addr) bool { return addr.IsValid() && reach.DescribeNonPublic(addr) == "" }
