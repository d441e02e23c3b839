package sandbox

import (
	"net"
	"testing"
)

// Where nobody listens, a socket can be connected to itself.
func TestDetectsSelfConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	there := l.Addr().(*net.TCPAddr)
	other, err := net.Dial("tcp", there.String())
	if err != nil {
		t.Fatal(err)
	}
	if isSelfConnection(other) {
		t.Error("a listener was reached")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	same, err := (&net.Dialer{LocalAddr: there}).Dial("tcp", there.String())
	if err != nil {
		t.Skipf("the port can't be bound again: %v", err)
	}
	defer same.Close()
	if !isSelfConnection(same) {
		t.Errorf("%v reaches %v", same.LocalAddr(), same.RemoteAddr())
	}
}
