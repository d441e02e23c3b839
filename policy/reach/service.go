package reach

import "net/netip"

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
	switch what := Inside(addr); {
	case !addr.IsValid():
		return "no address"
	case addr.IsLoopback() || addr.IsPrivate() && what == aPrivate:
		return ""
	case what == "":
		return "a public address"
	default:
		return what
	}
}
