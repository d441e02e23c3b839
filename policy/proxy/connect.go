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

// connect dials the target. private permits private addresses. Every address of a name must be permitted,
// and only the checked addresses are dialled, without a second lookup.
//
// If the target is reached through another proxy, that proxy resolves and dials, and via is its URL. Then
// throughVia makes the connection: to the target (tunnelVia), or only to the proxy (dialVia).
func (p *Proxy) connect(ctx context.Context, t reach.Target, private bool, throughVia viaDialer) (conn net.Conn, via *url.URL, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.connect)
	defer cancel()
	via = p.proxyFor(t)
	addresses := []netip.Addr{t.Addr}
	if via == nil && !t.Addr.IsValid() {
		if addresses, err = p.resolve(ctx, t.Name); err != nil {
			return nil, nil, err
		}
	}
	if err := p.checkAddresses(t, addresses, private); err != nil {
		return nil, nil, err
	}
	if via == nil {
		conn, err = p.dialFirst(ctx, addresses, t.Port)
	} else {
		conn, err = throughVia(ctx, via, t)
	}
	return conn, via, err
}

// checkAddresses returns a refusedError if an address of the target is forbidden. It prefers to report an address
// that no change to the job could permit.
func (p *Proxy) checkAddresses(t reach.Target, addresses []netip.Addr, private bool) error {
	ownAddrs, err := ownAddresses()
	if err != nil {
		return err
	}
	problem, openable := "", true // whether a change to the job could permit the address
	for _, address := range addresses {
		description := describeUndialable(address, ownAddrs, private)
		if description != "" && openable {
			problem, openable = description, !private && reach.IsPrivate(address) && description != policy.ThisMachineReason
		}
	}
	if problem == "" {
		return nil
	}
	refused := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: policy.LocalAddressRefusal(t, p.options.Hosts.Decide(t), problem, openable)}
	return errors.Join(&refusedError{refused}, p.options.Observe(refused))
}

// refusePrivate returns d, the refusal of a private address that the list lacks. For an address of this
// machine it returns a refusal that suggests no entry in the list.
func refusePrivate(t reach.Target, d policy.HostDecision) policy.HostDecision {
	if ownAddrs, err := ownAddresses(); err == nil && ownAddrs[t.Addr] {
		return policy.LocalAddressRefusal(t, d, policy.ThisMachineReason, false)
	}
	return d
}

// resolve looks up a name without the search domains of the machine.
func (p *Proxy) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	lookup := p.options.Resolve
	if lookup == nil {
		lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
		}
	}
	addresses, err := lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: name, IsNotFound: true}
	}
	const maxAddresses = 16
	for i, address := range addresses {
		addresses[i] = address.Unmap().WithZone("")
	}
	return addresses[:min(len(addresses), maxAddresses)], nil
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
	var dialErrs error
	for i, address := range addresses {
		deadline, _ := ctx.Deadline()
		share := time.Until(deadline) / time.Duration(len(addresses)-i)
		shareCtx, cancel := context.WithTimeout(ctx, share)
		conn, err := dial(shareCtx, netip.AddrPortFrom(address, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		dialErrs = errors.Join(dialErrs, err)
	}
	return nil, dialErrs
}

// ownAddresses returns the machine's own addresses, including public ones. Through them, commands would
// reach the machine's servers without its firewall.
func ownAddresses() (map[netip.Addr]bool, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := make(map[netip.Addr]bool, len(interfaces))
	for _, address := range interfaces {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			own[prefix.Addr().Unmap().WithZone("")] = true
		}
	}
	return own, nil
}

// describeUndialable describes an address that must not be dialled, or returns "". own has the addresses of this
// machine. private permits private addresses of other machines.
func describeUndialable(address netip.Addr, own map[netip.Addr]bool, private bool) string {
	switch description := reach.DescribeNonPublic(address); {
	case own[address] && (description == "" || reach.IsPrivate(address)):
		return policy.ThisMachineReason
	case private && reach.IsPrivate(address):
		return ""
	default:
		return description
	}
}
