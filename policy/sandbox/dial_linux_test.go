package sandbox

import (
	"net"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Where nobody listens, a socket can be connected to itself.
func TestDetectsSelfConnection(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	there := l.Addr().(*net.TCPAddr)
	other := must.Get(net.Dial("tcp", there.String()))(t)
	must.Same(t, false, isSelfConnection(other), "a listener was reached")
	must.Do(t, other.Close())
	must.Do(t, l.Close())
	same, err := (&net.Dialer{LocalAddr: there}).Dial("tcp", there.String())
	if err != nil {
		t.Skipf("the port can't be bound again: %v", err)
	}
	defer same.Close()
	if !isSelfConnection(same) {
		t.Errorf("%v reaches %v", same.LocalAddr(), same.RemoteAddr())
	}
}
