package services

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/agent-ci/agent-ci/policy/forward"
)

// connect connects to the service at its port.
func (s *service) connect(ctx context.Context) (net.Conn, error) {
	return s.connectTo(ctx, s.Port)
}

// connectTo connects to a port of the service. For an external service it tries all addresses.
func (s *service) connectTo(ctx context.Context, port int) (net.Conn, error) {
	if !s.isExternal() {
		return s.box.Dial(ctx, port)
	}
	var failed error
	for _, address := range s.addresses {
		conn, err := dialBriefly(ctx, address)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// dialBriefly connects within a few seconds, so that time remains for other addresses.
func dialBriefly(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	const wait = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, "tcp", address.String())
}

// startForwarding lets commands reach the service from now on.
func (s *service) startForwarding() { s.forwarder = forward.Start(s.listener, s.connect) }
