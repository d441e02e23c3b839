package reach

import (
	"net/netip"
	"slices"
	"strings"
)

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

// nearDomains are the domains whose names no public DNS has: RFC 6761 (localhost, test), RFC 6762
// (local), RFC 8375 (home.arpa), and internal, which ICANN keeps for private use.
var nearDomains = []string{"localhost", "local", "internal", "home.arpa", "test"}

// Near reports whether a host may be on this machine or in its network: a loopback or private
// address, a name without a dot, or one below nearDomains. Nothing is looked up, so that a check of
// a job and its run agree.
func Near(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return NoService(addr) == ""
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(name, ".") || slices.ContainsFunc(nearDomains, func(domain string) bool { return strings.HasSuffix(name, "."+domain) })
}
