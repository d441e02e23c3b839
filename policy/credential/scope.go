package credential

import (
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// longestPath bounds the path of a scope.
const longestPath = 512

// ParseScope reads what of a host a credential is for: a name or an address, with ":"
// and a port for another one than 443, and with "/" and the beginning of a path where
// not all of the host is meant.
func ParseScope(text string) (Scope, error) {
	host, path, pathed := strings.Cut(text, "/")
	if strings.Contains(host, "*") {
		return Scope{}, errors.New("has a wildcard; a secret is for hosts that are named one by one")
	}
	if pathed && strings.HasPrefix(path, "/") && strings.HasSuffix(host, ":") {
		return Scope{}, errors.New("must be a host without https://, such as npm.example.com or git.example.com/team")
	}
	entry, err := reach.ParseEntry(host)
	if err != nil {
		return Scope{}, err
	}
	s := Scope{Host: entry}
	if path = strings.TrimSuffix(path, "/"); path != "" {
		s.Path = "/" + path
	}
	return s, checkPath(s.Path)
}

// checkPath refuses what has several spellings, since servers and the proxy could take
// one for another.
func checkPath(path string) error {
	for i := range len(path) {
		switch c := path[i]; {
		case c <= ' ' || c >= 0x7f:
			return errors.New("has a path with a character that is none of printable ASCII")
		case c == '?' || c == '#':
			return errors.New("has a query or a fragment; a secret is for a host or for paths of one")
		case strings.IndexByte(`%\*;`, c) >= 0:
			return errors.New("has a path with " + string(c) + ", which servers read in different ways; name less of the path")
		}
	}
	if len(path) > longestPath {
		return errors.New("has a path that is too long")
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path != "" && (part == "" || part == "." || part == "..") {
			return errors.New("has a path with //, /./ or /../ in it")
		}
	}
	return nil
}

// String is the scope as it is written in a job.
func (s Scope) String() string { return s.Host.String() + s.Path }
