package reach_test

import (
	"net/netip"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
)

func TestAllowsServicesOnlyNearby(t *testing.T) {
	for _, address := range []string{
		"127.0.0.1", "127.8.8.8", "::1", "10.1.2.3", "172.18.0.2", "192.168.1.1", "fd12:3456::1", "::ffff:10.0.0.1",
	} {
		must.Same(t, "", reach.UnusableForService(netip.MustParseAddr(address)), address)
	}
	for _, address := range []string{
		"169.254.169.254", "::ffff:169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%lo", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1",
		"168.63.129.16", "100.100.100.200", "192.0.0.192", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::", "0.0.0.0", "::", "255.255.255.255", "224.0.0.1",
		"93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "172.32.0.1", "198.18.0.1",
	} {
		if why := reach.UnusableForService(netip.MustParseAddr(address)); why == "" {
			t.Errorf("%s is taken", address)
		}
	}
	if reach.UnusableForService(netip.Addr{}) == "" {
		t.Error("no address is taken for one")
	}
}

func TestRecognisesLocalHosts(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST.", "a.localhost", "mcp", "tools.internal", "nas.local", "box.home.arpa", "127.0.0.1", "::1", "10.1.2.3", "fd12:3456::1"} {
		must.Same(t, true, reach.IsLocal(host), host, "is taken for a public host")
	}
	for _, host := range []string{"example.com", "example.com.", "localhost.example.com", "internal.example", "93.184.216.34", "169.254.169.254", "::ffff:8.8.8.8"} {
		must.Same(t, false, reach.IsLocal(host), host, "is taken for a near host")
	}
}
