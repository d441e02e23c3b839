// Package reach owns lists of reachable hosts: the syntax of entries and targets, their match, and
// addresses beyond the reach of any list. It resolves and dials nothing; package proxy does.
package reach

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The protocols of an HTTP proxy, named like in rules.
const (
	HTTP  = "http"  // a request that the proxy reads
	HTTPS = "https" // a CONNECT tunnel, whatever its content
)

// Target is the destination of a request, by name or address.
type Target struct {
	Protocol string
	Name     string     // lower case, ASCII, without the dot at its end
	Addr     netip.Addr // if the request names an address; Name is then empty
	Port     uint16
}

// ParseTarget parses host and port of a request's target (RFC 9112, 3.2). A tunnel needs an explicit
// port. The error is the end of a sentence about the target.
func ParseTarget(protocol, authority string) (Target, error) {
	host, port, err := splitPort(authority)
	if err != nil {
		return Target{}, err
	}
	t := Target{Protocol: protocol, Port: port}
	switch {
	case port == 0 && protocol == HTTPS:
		return Target{}, errors.New("names no port")
	case port == 0:
		t.Port = defaultPort(protocol)
	}
	t.Name, t.Addr, err = parseHost(host)
	return t, err
}

func defaultPort(protocol string) uint16 {
	if protocol == HTTPS {
		return 443
	}
	return 80
}

// Host returns the name or address.
func (t Target) Host() string {
	if t.Addr.IsValid() {
		return t.Addr.String()
	}
	return t.Name
}

// Entry returns the list entry for the target.
func (t Target) Entry() string {
	if t.Port == defaultPort(t.Protocol) {
		return t.Host()
	}
	return t.String()
}

// String returns host and port.
func (t Target) String() string {
	return net.JoinHostPort(t.Host(), strconv.Itoa(int(t.Port)))
}

// splitPort splits host and port, and removes the brackets of an IPv6 address. An IPv6 address without
// brackets has no port. A missing port gives 0.
func splitPort(authority string) (host string, port uint16, err error) {
	host, digits, hasPort := authority, "", false
	switch {
	case strings.HasPrefix(authority, "["):
		if host, digits, hasPort, err = splitBrackets(authority); err != nil {
			return "", 0, err
		}
	case strings.Count(authority, ":") == 1:
		host, digits, hasPort = strings.Cut(authority, ":")
	}
	if !hasPort {
		return host, 0, nil
	}
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || digits[0] == '0' {
		return "", 0, errors.New("has no port after its colon: a number from 1 to 65535")
	}
	return host, uint16(number), nil
}

// splitBrackets splits an IPv6 address in brackets from the port after them.
func splitBrackets(authority string) (host, digits string, hasPort bool, err error) {
	invalid := errors.New("has brackets that are no address")
	end := strings.LastIndexByte(authority, ']')
	if end < 0 {
		return "", "", false, invalid
	}
	host, rest := authority[1:end], authority[end+1:]
	digits, hasPort = strings.CutPrefix(rest, ":")
	isComplete := hasPort || rest == ""
	if !isComplete || !strings.Contains(host, ":") {
		return "", "", false, invalid
	}
	return host, digits, hasPort, nil
}

// The limits of names (RFC 1035, 2.3.4).
const (
	maxName  = 253
	maxLabel = 63
)

// parseHost parses a name or an address. It refuses unusual forms of addresses, such as 127.1, that a
// resolver might accept.
func parseHost(host string) (name string, addr netip.Addr, err error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		switch {
		case addr.Zone() != "":
			return "", netip.Addr{}, errors.New("has an address with a zone")
		case addr.Is4In6():
			return "", netip.Addr{}, errors.New("has an IPv4 address inside an IPv6 one")
		}
		return "", addr, nil
	}
	name = strings.ToLower(strings.TrimSuffix(host, "."))
	return name, netip.Addr{}, checkName(name)
}

// checkName refuses invalid names, and names that end in a number: a resolver may read an address.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return errors.New("has no host, or one that is too long")
	}
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return err
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	hexDigits, isHex := strings.CutPrefix(last, "0x")
	isHexNumber := isHex && strings.Trim(hexDigits, "0123456789abcdef") == ""
	isNumber := strings.Trim(last, "0123456789") == ""
	if isNumber || isHexNumber {
		return errors.New("ends in a number, as an address in an unusual form does; write it with four decimal numbers")
	}
	return nil
}

// checkLabel refuses an invalid label of a name.
func checkLabel(label string) error {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return errors.New("is no host: between its dots stand 1 to 63 letters, digits and hyphens")
	}
	for _, c := range []byte(label) {
		switch {
		case c >= 0x80:
			return errors.New("must be in its ASCII form (xn--…): letters of other scripts look like others")
		case c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z'):
			return errors.New("is no host: it takes letters, digits, hyphens and dots, without scheme, path and user")
		}
	}
	return nil
}
