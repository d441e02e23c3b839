package github

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// storeClient speaks to places of archives: as nobody, in the clear only where the API
// does, too, and at addresses of this machine or its network only where the API is at one.
func (c *Client) storeClient() *http.Client {
	dialer := newDialer()
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return c.mayDial(ctx, at.Addr())
	}
	direct := defaultTransport()
	direct.Proxy, direct.DialContext = nil, dialer.DialContext
	anonymous := &tokenTransport{base: &storeTransport{direct: direct, proxied: defaultTransport()}, may: func(*url.URL) bool { return false }}
	return &http.Client{
		Transport: &retryTransport{base: anonymous, wait: c.wait, now: time.Now},
		Timeout:   downloadTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return &redirectError{"more than five in a row"}
			}
			return c.mayStore(req.Context(), req.URL)
		},
	}
}

// storeTransport dials a place itself, or has the proxy of the environment do so, whose
// own address may be any.
type storeTransport struct{ direct, proxied http.RoundTripper }

func (t *storeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(req); proxy != nil || err != nil {
		return t.proxied.RoundTrip(req)
	}
	return t.direct.RoundTrip(req)
}

// mayStore refuses a place that no archive is fetched from.
func (c *Client) mayStore(ctx context.Context, place *url.URL) error {
	inTheClear := place.Scheme == "http" && c.rest.BaseURL.Scheme == "http" && loopback(place.Hostname())
	switch {
	case place.User != nil:
		return &redirectError{"its address names a user"}
	case place.Host == "" || place.Scheme != "https" && !inTheClear:
		return &redirectError{fmt.Sprintf("%s://%s is no https address", place.Scheme, place.Host)}
	}
	if at, err := netip.ParseAddr(place.Hostname()); err == nil { // a proxy would dial it as well
		return c.mayDial(ctx, at)
	}
	return nil
}

// mayDial refuses an address that is not the public internet's, unless one of the API's
// is not either.
func (c *Client) mayDial(ctx context.Context, at netip.Addr) error {
	if public(at) {
		return nil
	}
	own, err := net.DefaultResolver.LookupNetIP(ctx, "ip", c.rest.BaseURL.Hostname())
	if err == nil && slices.ContainsFunc(own, func(addr netip.Addr) bool { return !public(addr) }) {
		return nil
	}
	return &redirectError{fmt.Sprintf("%s is an address of this machine or its network, and the API's is not", at)}
}

// closed are the blocks of addresses that are not the public internet's, and those by which clouds
// serve their machines. A test holds them to the blocks that package reach keeps from commands.
var closed = sync.OnceValue(func() (all []netip.Prefix) {
	for _, block := range strings.Fields(`
		0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
		192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
		224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20`) {
		all = append(all, netip.MustParsePrefix(block))
	}
	return all
})

// given is the only part of IPv6 from which public addresses are assigned. Below nat64 a network
// without IPv4 reaches it (RFC 6052).
var (
	given = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0x20}), 3)
	nat64 = netip.PrefixFrom(netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b}), 96)
)

// public reports whether an address is the public internet's.
func public(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	if nat64.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if addr.Is6() && !given.Contains(addr) {
		return false
	}
	return addr.IsValid() && !slices.ContainsFunc(closed(), func(block netip.Prefix) bool { return block.Contains(addr) })
}
