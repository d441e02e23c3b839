package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// refusedError is that a target's address is not to be reached.
type refusedError struct{ Request }

func (e *refusedError) Error() string { return e.Target + " is refused. " + e.Reason }

// connect gives a connection to the target, which may have a private address where
// private says so. Of a name all addresses have to be fit to be reached, and the ones
// that were looked at are dialled: nobody is asked twice. Where the target is reached by
// another proxy that one resolves and dials.
func (p *Proxy) connect(ctx context.Context, t reach.Target, private bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.Connect)
	defer cancel()
	if via := p.via(t); via != nil {
		if err := p.fit(t, []netip.Addr{t.Addr}, private); err != nil {
			return nil, err
		}
		return p.tunnelVia(ctx, via, t)
	}
	addresses := []netip.Addr{t.Addr}
	if !t.Addr.IsValid() {
		var err error
		if addresses, err = p.resolve(ctx, t.Name); err != nil {
			return nil, err
		}
	}
	if err := p.fit(t, addresses, private); err != nil {
		return nil, err
	}
	return p.dialFirst(ctx, addresses, t.Port)
}

// connectPlain is connect for a request that goes on as one of HTTP. Where the target is
// reached by another proxy, the connection leads to that one, and asks it.
func (p *Proxy) connectPlain(ctx context.Context, t reach.Target, private bool) (conn net.Conn, via *url.URL, err error) {
	if via = p.via(t); via == nil {
		conn, err = p.connect(ctx, t, private)
		return conn, nil, err
	}
	if err := p.fit(t, []netip.Addr{t.Addr}, private); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.limits.Connect)
	defer cancel()
	conn, err = p.dialVia(ctx, via)
	return conn, via, err
}

// fit refuses a target of whose addresses one is not to be reached. What nothing opens is
// told first.
func (p *Proxy) fit(t reach.Target, addresses []netip.Addr, private bool) error {
	own, err := ownAddresses()
	if err != nil {
		return err
	}
	worst, openable := "", false
	for _, address := range addresses {
		what := local(address, own, private)
		if what != "" && (worst == "" || openable) {
			worst, openable = what, !private && reach.Private(address) && what != policy.OfThisMachine
		}
	}
	if worst == "" {
		return nil
	}
	refused := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: policy.LocalAddress(t, worst, openable)}
	return errors.Join(&refusedError{refused}, p.options.Observe(refused))
}

// closed is the refusal of a private address that nothing is for, which the list can open
// unless this machine has the address.
func closed(t reach.Target, d policy.HostDecision) policy.HostDecision {
	if own, err := ownAddresses(); err == nil && own[t.Addr] {
		return policy.LocalAddress(t, policy.OfThisMachine, false)
	}
	return d
}

// resolve asks for a name as it stands: domains that the machine searches are
// not the list's.
func (p *Proxy) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	ask := p.options.Resolve
	if ask == nil {
		ask = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
		}
	}
	addresses, err := ask(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: name, IsNotFound: true}
	}
	const most = 16
	for i, address := range addresses {
		addresses[i] = address.Unmap().WithZone("")
	}
	return addresses[:min(len(addresses), most)], nil
}

// dialFirst dials one address after the other until one answers.
func (p *Proxy) dialFirst(ctx context.Context, addresses []netip.Addr, port uint16) (net.Conn, error) {
	dial := p.options.Dial
	if dial == nil {
		dial = func(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address.String())
		}
	}
	var failed error
	for i, address := range addresses {
		deadline, _ := ctx.Deadline()
		share := time.Until(deadline) / time.Duration(len(addresses)-i)
		within, cancel := context.WithTimeout(ctx, share)
		conn, err := dial(within, netip.AddrPortFrom(address, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// ownAddresses are those of the machine: by a public one of them its own servers
// would be reached as from inside.
func ownAddresses() (map[netip.Addr]bool, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := make(map[netip.Addr]bool, len(interfaces))
	for _, each := range interfaces {
		if prefix, err := netip.ParsePrefix(each.String()); err == nil {
			own[prefix.Addr().Unmap().WithZone("")] = true
		}
	}
	return own, nil
}

// local says what keeps an address from being dialled, also where private ones may be.
func local(address netip.Addr, own map[netip.Addr]bool, private bool) string {
	switch what := reach.Inside(address); {
	case own[address] && (what == "" || reach.Private(address)):
		return policy.OfThisMachine
	case private && reach.Private(address):
		return ""
	default:
		return what
	}
}
