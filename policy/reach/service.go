package reach

import "net/netip"

// metadata are addresses within blocks of local networks by which clouds tell their
// machines secrets; those of link-local blocks are refused with them.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),   // Amazon
	netip.MustParsePrefix("fd20:ce::/32"),    // Google
	netip.MustParsePrefix("fd00:42::42/128"), // Scaleway
	netip.MustParsePrefix("fd00:c1::/32"),    // Oracle
}

// Private says whether an address is one of a local network that a list opens where its
// entry says so: none of this machine, none of a link alone and none by which a cloud
// tells its machines secrets.
func Private(addr netip.Addr) bool {
	return NoService(addr) == "" && !addr.Unmap().IsLoopback()
}

// NoService says what keeps an address from being that of a service which runs already on
// this machine or in its network: it is empty for a loopback and for a private address.
func NoService(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	for _, prefix := range metadata {
		if prefix.Contains(addr) {
			return "an address of a cloud's own service"
		}
	}
	switch what := Inside(addr); {
	case !addr.IsValid():
		return "no address"
	case addr.IsLoopback() || addr.IsPrivate():
		return ""
	case what == "":
		return "a public address"
	default:
		return what
	}
}
