package reach

import (
	"errors"
	"net/netip"
	"strings"
)

// Entry is an entry of a list: a host, or all hosts below a name.
type Entry struct {
	text     string
	name     string // without the wildcard
	wildcard bool   // all names below name, not name itself
	addr     netip.Addr
	port     uint16 // 0 for the protocol's default
	private  bool   // the host may have private addresses
}

// ParseEntry parses an entry: a name, an address, or "*." and a name for all hosts below it. An entry
// without ":" and a port is for the default ports: 443 of HTTPS and 80 of HTTP. The error is the end
// of a sentence about the entry.
func ParseEntry(text string) (Entry, error) {
	e, err := readEntry(text)
	if err != nil {
		return e, err
	}
	switch description := DescribeNonPublic(e.addr); {
	case IsPrivate(e.addr):
		return e, errors.New("is a private address; one that commands are to reach is written as {host: …, private: true}")
	case description != "":
		return e, errors.New("is " + description + ", which no list opens")
	}
	return e, nil
}

// ParsePrivate parses an entry for a host with private addresses: one name or one private address.
// The error is the end of a sentence about the entry.
func ParsePrivate(text string) (Entry, error) {
	e, err := readEntry(text)
	if err != nil {
		return e, err
	}
	switch description := DescribeNonPublic(e.addr); {
	case e.wildcard:
		return e, errors.New("has a wildcard, which private: true does not go with: name each host")
	case e.addr.IsValid() && description == "":
		return e, errors.New("is a public address; leave private out")
	case e.addr.IsValid() && !IsPrivate(e.addr):
		return e, errors.New("is " + description + ", which no list opens")
	}
	e.private = true
	return e, nil
}

// readEntry parses an entry and accepts public and private addresses.
func readEntry(text string) (Entry, error) {
	if text == "*" {
		return Entry{}, errors.New("must name a host; all of them is network: full")
	}
	if strings.Contains(text, "://") {
		return Entry{}, errors.New("must be a host alone, as in api.example.com, without https:// and without a path")
	}
	host, port, err := splitPort(text)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{text: text, port: port}
	host, e.wildcard = strings.CutPrefix(host, "*.")
	if strings.Contains(host, "*") {
		return Entry{}, errors.New("may have a wildcard at its beginning only, for whole labels: *.example.org")
	}
	if e.name, e.addr, err = parseHost(host); err != nil {
		return Entry{}, err
	}
	return e, e.checkListable()
}

// checkListable refuses names that no list can open, and wildcards for an address or a top-level domain.
func (e Entry) checkListable() error {
	description := UnlistableName(e.name)
	switch {
	case e.addr.IsValid() && e.wildcard:
		return errors.New("has a wildcard before an address")
	case e.wildcard && !strings.Contains(e.name, "."):
		return errors.New("opens a whole top-level domain; name more of the host, or write network: full")
	case description == thisMachine:
		return errors.New("is this machine, which no list opens; commands have a loopback of their own without one")
	case description != "" && !e.wildcard:
		return errors.New("is " + description + ", which no list opens")
	}
	return nil
}

// Private reports whether the host may have private addresses.
func (e Entry) Private() bool { return e.private }

// Host returns the entry as it was written. Several entries may have the same text.
func (e Entry) Host() string { return e.text }

// Hostname returns the entry's name or address, without port and wildcard.
func (e Entry) Hostname() string {
	if e.addr.IsValid() {
		return e.addr.String()
	}
	return e.name
}

// Port returns the entry's port, or 0 for the protocol's default.
func (e Entry) Port() uint16 { return e.port }

// String returns the entry for people.
func (e Entry) String() string {
	if e.private {
		return e.text + " (private)"
	}
	return e.text
}

// Allows reports whether the entry permits a target. An entry with a name permits no target with an
// address, even if the name has that address.
func (e Entry) Allows(t Target) bool {
	port := e.port
	if port == 0 {
		port = defaultPort(t.Protocol)
	}
	if t.Port != port {
		return false
	}
	switch {
	case e.addr.IsValid() || t.Addr.IsValid():
		return e.addr == t.Addr
	case e.wildcard: // it opens only names that may be listed
		return strings.HasSuffix(t.Name, "."+e.name) && UnlistableName(t.Name) == ""
	}
	return e.name == t.Name
}

// List holds the hosts that commands may reach.
type List []Entry

// ParseList parses entries with ParseEntry.
func ParseList(texts []string) (List, error) {
	list := make(List, 0, len(texts))
	for _, text := range texts {
		e, err := ParseEntry(text)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// EntryFor returns the first entry for the target, preferring one that permits private addresses.
func (l List) EntryFor(t Target) (found Entry, ok bool) {
	for _, e := range l {
		if !e.Allows(t) {
			continue
		}
		if e.private {
			return e, true
		}
		if !ok {
			found, ok = e, true
		}
	}
	return found, ok
}

// String returns the entries for people.
func (l List) String() string {
	texts := make([]string, len(l))
	for i, e := range l {
		texts[i] = e.String()
	}
	return strings.Join(texts, ", ")
}
