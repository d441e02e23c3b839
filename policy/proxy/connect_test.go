package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// privately opens hosts that may have private addresses, and leads all names to some.
func privately(t *testing.T, addresses string, hosts ...string) func(*Options) {
	t.Helper()
	list := must.Get(reach.ParseList([]string{"*.example.org"}))(t)
	for _, host := range hosts {
		list = append(list, must.Get(reach.ParsePrivate(host))(t))
	}
	var all []netip.Addr
	for text := range strings.FieldsSeq(addresses) {
		all = append(all, netip.MustParseAddr(text))
	}
	return func(o *Options) {
		o.Hosts = policy.Hosts{List: list, Key: "policy.network"}
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) { return append([]netip.Addr(nil), all...), nil }
	}
}

// What private: true opens and what it does not, by a tunnel and by HTTP, and that a name
// without it opens none of it.
func TestPrivateEntryOpensOnlyPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ addresses, refused, opens string }{ // what each address is that is never reached, and whether the list could open it
		{"10.0.0.1", "", "private"},
		{"172.16.9.9", "", "private"},
		{"192.168.1.1", "", "private"},
		{"fd12:3456::1", "", "private"},
		{"::ffff:10.0.0.1", "", "private"},
		{"93.184.216.34 10.0.0.1", "", "private"},
		{"10.0.0.1 169.254.169.254", "a link-local address", ""},
		{"169.254.169.254 10.0.0.1", "a link-local address", ""},
		{"10.0.0.1 127.0.0.1", "a loopback address", ""},
		{"169.254.169.254", "a link-local address", ""},
		{"169.254.1.1", "a link-local address", ""},
		{"fe80::1", "a link-local address", ""},
		{"::ffff:169.254.169.254", "a link-local address", ""},
		{"127.0.0.1", "a loopback address", ""},
		{"127.8.8.8", "a loopback address", ""},
		{"::1", "a loopback address", ""},
		{"::ffff:127.0.0.1", "a loopback address", ""},
		{"64:ff9b::a00:1", "a private address", ""},
		{"64:ff9b::a9fe:a9fe", "a link-local address", ""},
		{"64:ff9b::7f00:1", "a loopback address", ""},
		{"2002:a00:1::", "an address that holds an IPv4 one", ""},
		{"2001::1", "an address of a protocol", ""},
		{"fd00:ec2::254", "a cloud's own service", ""},
		{"fd20:ce::254", "a cloud's own service", ""},
		{"fd00:42::42", "a cloud's own service", ""},
		{"fd00:c1::a9fe:a9fe", "a cloud's own service", ""},
		{"fd00:a9fe:a9fe::1", "a cloud's own service", ""},
		{"168.63.129.16", "a cloud's own service", ""},
		{"100.100.100.200", "a provider's own network", ""},
		{"192.0.0.192", "an address of a protocol", ""},
		{"0.0.0.0", "an unspecified address", ""},
		{"224.0.0.1", "a multicast address", ""},
		{"255.255.255.255", "a reserved address", ""},
	} {
		for protocol, request := range map[string]string{
			"https": "CONNECT %s:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n", "http": "GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			t.Run(test.addresses+"/"+protocol, func(t *testing.T) {
				b := newBench(t, echo(t).Listener.Addr(), privately(t, test.addresses, "db.example.org"))
				answer := b.raw(fmt.Sprintf(request, "db.example.org"))
				if test.refused == "" {
					must.Contain(t, answer, "GET / host=")
					must.Same(t, 1, len(b.told()), "the answer", answer)
				} else if !strings.HasPrefix(answer, "HTTP/1.1 403 ") || !strings.Contains(answer, test.refused) || strings.Contains(answer, "public internet") || len(b.dialled) > 0 {
					t.Errorf("dialled %d times, the answer is\n%s", len(b.dialled), answer)
				}
				dialled := len(b.dialled)
				words := b.raw(fmt.Sprintf(request, "other.example.org"))
				if !strings.HasPrefix(words, "HTTP/1.1 403 ") || !strings.Contains(words, "built-in:local-address") || !strings.HasSuffix(b.told()[len(b.told())-1], "false built-in:local-address") || len(b.dialled) > dialled {
					t.Errorf("without private %q are told, dialled is %d times, the answer is\n%s", b.told(), len(b.dialled), words)
				}
				must.Contain(t, words, cmp.Or(test.refused, "a private address"))
				must.Same(t, test.opens != "", strings.Contains(words, "{host: other.example.org, private: true}"), words)
			})
		}
	}
}

// An entry that lets a host have private addresses opens no other one, and no other port.
func TestPrivateEntryOpensOnlyItsTarget(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"10.0.0.5:8443":        "HTTP/1.1 200 ",
		"10.0.0.5:443":         "HTTP/1.1 403 ",
		"10.0.0.6:8443":        "HTTP/1.1 403 ",
		"[fd12::5]:443":        "HTTP/1.1 200 ",
		"[fd12::6]:443":        "HTTP/1.1 403 ",
		"[::ffff:a00:5]:8443":  "HTTP/1.1 403 ",
		"[64:ff9b::a00:5]:443": "HTTP/1.1 403 ",
		"127.0.0.1:8443":       "HTTP/1.1 403 ",
		"169.254.169.254:443":  "HTTP/1.1 403 ",
		"167772165:8443":       "HTTP/1.1 403 ",
	} {
		b := newBench(t, echo(t).Listener.Addr(), privately(t, "", "10.0.0.5:8443", "fd12::5"))
		answer := b.raw("CONNECT " + target + " HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n")
		must.Same(t, true, strings.HasPrefix(answer, want), target, "the answer is", answer)
	}
}

// An address of this machine's own stays closed, private or not, dialled or asked for by
// another proxy.
func TestRefusesOwnPrivateAddress(t *testing.T) {
	t.Parallel()
	own := must.Get(ownAddresses())(t)
	for address := range own {
		if !reach.IsPrivate(address) {
			continue
		}
		b := newBench(t, echo(t).Listener.Addr(), privately(t, address.String(), "db.example.org"))
		if answer := b.raw("CONNECT db.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(answer, "one of this machine") || strings.Contains(answer, "private: true") {
			t.Errorf("%s: the answer is\n%s", address, answer)
		}
		for _, named := range []string{address.String() + " 10.1.2.3", "10.1.2.3 " + address.String()} {
			b = newBench(t, echo(t).Listener.Addr(), privately(t, named))
			if answer := b.raw("CONNECT db.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(answer, "one of this machine, which no list of hosts opens") || !strings.Contains(answer, "as a service of the job") || strings.Contains(answer, "private: true") {
				t.Errorf("%s: the answer is\n%s", named, answer)
			}
		}
		if answer := b.raw("CONNECT " + net.JoinHostPort(address.String(), "443") + " HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(answer, "one of this machine") || strings.Contains(answer, "private: true") {
			t.Errorf("%s, which is in no list: the answer is\n%s", address, answer)
		}
		relay := newRelay(t, echo(t).Listener.Addr(), "", false)
		b = newBench(t, nil, privately(t, "", address.String(), net.JoinHostPort(address.String(), "80")), by(t, relay.URL, nil))
		for request, port := range map[string]string{"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n": "443", "GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n": "80"} {
			if answer := b.raw(fmt.Sprintf(request, net.JoinHostPort(address.String(), port))); !strings.Contains(answer, "one of this machine") || len(relay.requests()) > 0 {
				t.Errorf("%s by another proxy: the answer is\n%s", address, answer)
			}
		}
		return
	}
	t.Skip("this machine has no private address")
}

// A name server may give another answer each time that it is asked. The addresses that are looked at are
// those that are dialled: a name is resolved once a connection, by a tunnel and by HTTP.
func TestResolvesNameOncePerConnection(t *testing.T) {
	t.Parallel()
	const public = "93.184.216.34"
	for _, inside := range []string{"127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1"} {
		for protocol, request := range map[string]string{
			"https": "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n",
			"http":  "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			t.Run(inside+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int64
				b := newBench(t, echo(t).Listener.Addr(), func(o *Options) {
					o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
						if asked.Add(1)%2 == 1 {
							return []netip.Addr{netip.MustParseAddr(public)}, nil
						}
						return []netip.Addr{netip.MustParseAddr(inside)}, nil
					}
				})
				for i, want := range []string{"HTTP/1.1 200 ", "HTTP/1.1 403 ", "HTTP/1.1 200 ", "HTTP/1.1 403 "} {
					if answer := b.raw(request); !strings.HasPrefix(answer, want) || asked.Load() != int64(i+1) {
						t.Errorf("request %d, with the name asked for %d times, gets\n%s", i+1, asked.Load(), answer)
					}
				}
				must.Same(t, 2, len(b.dialled), "dialled")
				for range len(b.dialled) {
					if address := <-b.dialled; !strings.HasPrefix(address, public+":") {
						t.Errorf("dialled %s", address)
					}
				}
			})
		}
	}
}
