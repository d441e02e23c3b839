package sandbox

import (
	"context"
	"errors"
	"net"
)

// Dial has nothing to connect to: commands have no loopback of their own here.
func (s *Sandbox) Dial(context.Context, int) (net.Conn, error) {
	return nil, errors.New("there is no loopback of the commands' own")
}
