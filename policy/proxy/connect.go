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

// refusedError reports a forbidden address of an allowed target.
type refusedError struct{ Request }

func (e *refusedError) Error() string { return e.Target + " is refused. " + e.Reason }

// connect dials the target; private permits private addresses. Every address of a name must be
// permitted, and only the checked addresses are dialled, without a second lookup.
//
// If another proxy leads to the target, that proxy resolves and dials, and via is its URL. The
// connection then leads through the proxy to the target, or with plain, only to the proxy.
func (p *Proxy) connect(ctx context.Context, t reach.Target, private, plain bool) (conn net.Conn, via *url.URL, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.connect)
	defer cancel()
	via = p.via(t)
	addresses := []netip.Addr{t.Addr}
	if via == nil && !t.Addr.IsValid() {
		if addresses, err = p.resolve(ctx, t.Name); err != nil {
			return nil, nil, err
		}
	}
	if err := p.fit(t, addresses, private); err != nil {
		return nil, nil, err
	}
	switch {
	case via == nil:
		conn, err = p.dialFirst(ctx, addresses, t.Port)
	case plain:
		conn, err = p.dialVia(ctx, via)
	default:
		conn, err = p.tunnelVia(ctx, via, t)
	}
	return conn, via, err
}

// fit returns a refusedError if an address of the target is forbidden. It prefers to report an address
// that no change to the job could permit.
func (p *Proxy) fit(t reach.Target, addresses []netip.Addr, private bool) error {
	own, err := ownAddresses()
	if err != nil {
		return err
	}
	worst, openable := "", false
	for _, address := range addresses {
		what := undialable(address, own, private)
		// Prefer an address that the job cannot permit over an openable one.
		if what != "" && (worst == "" || openable) {
			worst, openable = what, !private && reach.Private(address) && what != policy.ThisMachineReason
		}
	}
	if worst == "" {
		return nil
	}
	refused := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: policy.LocalAddress(t, p.options.Decide(t), worst, openable)}
	return errors.Join(&refusedError{refused}, p.options.Observe(refused))
}

// refusePrivate returns the refusal of a private address that is not in the list. It is d, unless the
// address belongs to this machine: then no list can permit it.
func refusePrivate(t reach.Target, d policy.HostDecision) policy.HostDecision {
	if own, err := ownAddresses(); err == nil && own[t.Addr] {
		return policy.LocalAddress(t, d, policy.ThisMachineReason, false)
	}
	return d
}

// resolve looks up a name without the search domains of the machine.
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

// dialFirst dials one address after the other until one answers. Each gets an equal share of the
// remaining time.
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

// ownAddresses returns the machine's own addresses, including public ones. Through them, commands would
// reach the machine's servers without its firewall.
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

// undialable describes an address that must not be dialled, or returns "".
func undialable(address netip.Addr, own map[netip.Addr]bool, private bool) string {
	switch what := reach.DescribeNonPublic(address); {
	case own[address] && (what == "" || reach.Private(address)):
		return policy.ThisMachineReason
	case private && reach.Private(address):
		return ""
	default:
		return what
	}
}
