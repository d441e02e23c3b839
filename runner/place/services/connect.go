package services

import (
	"context"
	"errors"
	"net"
	"time"
)

// connectTimeout limits the time for one address, so that time remains for others.
const connectTimeout = 5 * time.Second

// connect connects to the service at its port. For an external service it tries all addresses.
func (s *service) connect(ctx context.Context) (net.Conn, error) {
	if !s.isExternal() {
		return s.box.Dial(ctx, s.Port)
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	var failed error
	for _, address := range s.addresses {
		conn, err := dialer.DialContext(ctx, "tcp", address.String())
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}
