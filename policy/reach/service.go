package reach

import (
	"net/netip"
	"slices"
	"strings"
)

// IsPrivate reports whether an address is private, so that an entry with private: true can permit it. It is
// false for addresses of this machine, the local link and a cloud's metadata service.
func IsPrivate(addr netip.Addr) bool {
	return UnusableForService(addr) == "" && !addr.Unmap().IsLoopback()
}

// UnusableForService describes an address that cannot belong to an existing service of this machine or its
// network. It returns "" for loopback and private addresses.
func UnusableForService(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	what := DescribeNonPublic(addr)
	isPrivate := addr.IsPrivate() && what == aPrivate
	switch {
	case !addr.IsValid():
		return "no address"
	case isPrivate || addr.IsLoopback():
		return ""
	case what == "":
		return "a public address"
	default:
		return what
	}
}

// localDomains lists domains without public DNS: RFC 6761 (localhost, test), RFC 6762 (local), RFC
// 8375 (home.arpa), and internal, reserved by ICANN for private use.
var localDomains = []string{"localhost", "local", "internal", "home.arpa", "test"}

// IsLocal reports whether a host may be on this machine or in its network: a loopback or private
// address, a name without a dot, or a name below localDomains. It resolves nothing, so validation
// and run always agree.
func IsLocal(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return UnusableForService(addr) == ""
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(name, ".") || slices.ContainsFunc(localDomains, func(domain string) bool { return strings.HasSuffix(name, "."+domain) })
}
