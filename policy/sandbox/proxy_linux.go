package sandbox

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// proxyPort is where the proxy is found on the commands' loopback. It is not one
// that the kernel gives to who asks for any, and the same in every run.
const proxyPort = 3128

// proxyVariables lead HTTP clients to the proxy, and not for what commands serve
// to each other.
func proxyVariables() []string {
	address, direct := fmt.Sprintf("http://127.0.0.1:%d", proxyPort), "localhost,127.0.0.1,::1"
	return []string{
		"HTTP_PROXY=" + address, "HTTPS_PROXY=" + address, "ALL_PROXY=" + address, "NO_PROXY=" + direct,
		"http_proxy=" + address, "https_proxy=" + address, "all_proxy=" + address, "no_proxy=" + direct,
		"NODE_USE_ENV_PROXY=1",
	}
}

// receiveListener receives a message and the listener that comes with it.
func (in *inside) receiveListener(to any) (net.Listener, error) {
	header, oob := make([]byte, stage.HeaderSize), make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := in.socket.ReadMsgUnix(header, oob)
	if err != nil {
		return nil, err
	}
	passed, err := descriptorIn(oob[:size])
	if err != nil {
		return nil, err
	}
	if passed != nil {
		defer passed.Close() // a listener has a descriptor of its own
	}
	if err := in.receiveRest(header, n, to); err != nil || passed == nil {
		return nil, err
	}
	return net.FileListener(passed)
}

// descriptorIn is the descriptor in a control message, nil for none.
func descriptorIn(rights []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) == 0 {
		return nil, err
	}
	return os.NewFile(uintptr(descriptors[0]), "proxy"), nil
}
