package form

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// Address is the address of a listening service.
type Address struct {
	Host string
	Port uint16
}

// ParseAddress parses HOST:PORT. The host is a name or an IP address; IPv6 addresses need brackets.
func ParseAddress(s string) (Address, error) {
	host, port, err := net.SplitHostPort(s)
	number, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil || number == 0 || strconv.FormatUint(number, 10) != port {
		return Address{}, errors.New("must be HOST:PORT, such as 127.0.0.1:5432")
	}
	if _, err := netip.ParseAddr(host); err != nil && !CompileFullMatch(`[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?`).MatchString(host) {
		return Address{}, errors.New("must be HOST:PORT, where the host is a name or an address")
	}
	return Address{host, uint16(number)}, nil
}

// KeyInQuery tells whether an address may have a key in its query.
type KeyInQuery bool

const (
	AllowKeyInQuery  KeyInQuery = true
	RefuseKeyInQuery KeyInQuery = false
)

// WebAddressCheck returns a function that checks an http or https address. Its messages suggest example,
// and append secretHint if the address contains a password, or a key that is refused.
func WebAddressCheck(example, secretHint string, key KeyInQuery) func(string) error {
	return func(s string) error {
		address, err := url.Parse(s)
		switch {
		case err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http":
			return errors.New("must be an address such as " + example)
		case address.User != nil:
			return errors.New("must not have a user or a password; " + secretHint)
		case address.Fragment != "":
			return errors.New("must not have a fragment (#…)")
		}
		query, err := url.ParseQuery(address.RawQuery)
		switch {
		case err != nil:
			return errors.New("must have a query such as ?name=value&other=value")
		case key == RefuseKeyInQuery && hasKey(query):
			return errors.New("must not have a key in its query (?…); " + secretHint)
		}
		if address.Scheme == "http" && !reach.IsLocal(address.Hostname()) {
			return errors.New("is http to a public host, where others could read and change the traffic; write https. http is for localhost, private addresses, names without a dot, and names that end in .internal or .local")
		}
		return nil
	}
}

// hasKey reports whether a query has a key, a token or a signature, judged by the names of its parts.
func hasKey(query url.Values) bool {
	for name := range query {
		if policy.NamesSecret(name, "") || slices.Contains([]string{"sig", "signature", "code"}, strings.ToLower(name)) {
			return true
		}
	}
	return false
}
