// Package reach owns which hosts and addresses a list opens to commands: how an
// entry of the list and the target of a request are written, what fits what,
// and which addresses no list opens. It asks no resolver and dials nothing; the
// proxy that does is package proxy's.
package reach

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The protocols that a proxy for HTTP speaks, as rules on hosts name them.
const (
	HTTP  = "http"  // a request that the proxy reads
	HTTPS = "https" // a tunnel, whatever goes through it
)

// Target is what a request wants to reach. It has a name or an address.
type Target struct {
	Protocol string
	Name     string     // lower case, ASCII, without the dot at its end
	Addr     netip.Addr // of a request that names one
	Port     uint16
}

// ParseTarget reads host and port as they stand in a request's target (RFC
// 9112, 3.2). Without a port it is the protocol's own; a tunnel has to name one.
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

func (t Target) Host() string {
	if t.Addr.IsValid() {
		return t.Addr.String()
	}
	return t.Name
}

// Entry is the target as a list would have it.
func (t Target) Entry() string {
	if t.Port == defaultPort(t.Protocol) {
		return t.Host()
	}
	return t.String()
}

// String is host and port as a request has them.
func (t Target) String() string {
	return net.JoinHostPort(t.Host(), strconv.Itoa(int(t.Port)))
}

// splitPort cuts the port off. 0 stands for none.
func splitPort(authority string) (host string, port uint16, err error) {
	host, digits, named := authority, "", false
	switch end := strings.LastIndexByte(authority, ']'); {
	case strings.HasPrefix(authority, "["):
		if end < 0 || end+1 < len(authority) && authority[end+1] != ':' || !strings.Contains(authority[1:end], ":") {
			return "", 0, errors.New("has brackets that are no address")
		}
		host, digits, named = authority[1:end], strings.TrimPrefix(authority[end+1:], ":"), end+1 < len(authority)
	case strings.Count(authority, ":") == 1:
		host, digits, named = strings.Cut(authority, ":")
	}
	if !named {
		return host, 0, nil
	}
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || number == 0 || digits[0] == '0' {
		return "", 0, errors.New("has no port after its colon: a number from 1 to 65535")
	}
	return host, uint16(number), nil
}

// The limits of names (RFC 1035, 2.3.4).
const (
	longestName  = 253
	longestLabel = 63
)

// parseHost tells addresses from names. What a resolver could take for an
// address in another form is neither.
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

func checkName(name string) error {
	if name == "" || len(name) > longestName {
		return errors.New("has no host, or one that is too long")
	}
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return err
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return errors.New("ends in a number, as an address in an unusual form does; write it with four decimal numbers")
	}
	return nil
}

func checkLabel(label string) error {
	if label == "" || len(label) > longestLabel || label[0] == '-' || label[len(label)-1] == '-' {
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
