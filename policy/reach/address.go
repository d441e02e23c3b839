package reach

import (
	"net/netip"
	"sync"
)

const (
	aPrivate      = "a private address"
	aCloudService = "an address of a cloud's own service"
)

// nonPublicBlocks lists address blocks outside the public internet (IANA registries, RFC 6890) and a
// cloud's address for its machines. Only 2000::/3 of IPv6 is assigned, so most other blocks need no
// entry.
var nonPublicBlocks = sync.OnceValue(func() []block {
	return []block{
		newBlock("an unspecified address", "0.0.0.0/8", "::/128"),
		newBlock(aCloudService, "fd00:ec2::/32", "fd20:ce::/32", "fd00:42::42/128", "fd00:c1::/32", "fd00:a9fe:a9fe::/48"), // Amazon, Google, Scaleway, Oracle, Akamai
		newBlock(aPrivate, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
		newBlock("an address of a provider's own network", "100.64.0.0/10"),
		newBlock("a loopback address", "127.0.0.0/8", "::1/128"),
		newBlock("a link-local address", "169.254.0.0/16", "fe80::/10", "fec0::/10"),
		newBlock(aCloudService, "168.63.129.16/32"),
		newBlock("an address of a protocol", "192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24", "2001::/23"), // Teredo, too
		newBlock("an address for documentation and tests", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
		newBlock("an address that holds an IPv4 one", "2002::/16"), // 6to4
		newBlock("a multicast address", "224.0.0.0/4", "ff00::/8"),
		newBlock("a reserved address", "240.0.0.0/4"),
	}
})

// block is a group of address ranges with one description.
type block struct {
	description string
	prefixes    []netip.Prefix
}

// newBlock returns a block of address ranges. It panics for an invalid one.
func newBlock(description string, prefixes ...string) block {
	b := block{description: description}
	for _, p := range prefixes {
		b.prefixes = append(b.prefixes, netip.MustParsePrefix(p))
	}
	return b
}

// nat64 is the prefix for IPv4 addresses in IPv6 networks (RFC 6052). global is the assigned part
// of IPv6.
var (
	nat64         = netip.PrefixFrom(netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b}), 96)
	globalUnicast = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0x20}), 3)
)

// DescribeNonPublic describes an address outside the public internet, such as a local one. It returns
// "" for a public or zero address. For an IPv6 address that contains an IPv4 address (mapped or
// NAT64), the IPv4 address decides.
func DescribeNonPublic(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	addr = addr.WithZone("").Unmap()
	if nat64.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	for _, b := range nonPublicBlocks() {
		for _, prefix := range b.prefixes {
			if prefix.Contains(addr) {
				return b.description
			}
		}
	}
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return "a reserved address"
	}
	return ""
}
