package credential

import (
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Scope is a host, or a path on it, that accepts a credential.
type Scope struct {
	Host reach.Entry // without a wildcard
	Path string      // includes everything below it; begins but does not end with "/"; "" means all paths
}

// ParseScope parses "host" or "host:port" with an optional path. The scope includes everything
// below the path, by whole segments.
func ParseScope(text string) (Scope, error) {
	host, path, _ := strings.Cut(text, "/")
	switch {
	case strings.Contains(text, "://"):
		return Scope{}, errors.New("is written without https://, which it is always")
	case strings.Contains(host, "*"):
		return Scope{}, errors.New("has a wildcard: a credential is for hosts that are named in full")
	case strings.ContainsAny(text, "?#"):
		return Scope{}, errors.New("has a query or a fragment: what follows the host is the beginning of a path")
	}
	entry, err := reach.ParseEntry(host)
	if err != nil {
		private, notPrivate := reach.ParsePrivate(host)
		if notPrivate != nil {
			return Scope{}, err // the error of ParseEntry explains more
		}
		entry = private
	}
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return Scope{Host: entry}, nil
	}
	if err := checkScopePath(path); err != nil {
		return Scope{}, err
	}
	return Scope{Host: entry, Path: "/" + path}, nil
}

// checkScopePath refuses a path, without its first slash, that servers may read in several ways. The error
// is the end of a sentence about the scope.
func checkScopePath(path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || strings.Trim(segment, ".") == "" {
			return errors.New("has a path with an empty segment or one of dots")
		}
	}
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("%\\;*\"<>^`{|}", c) >= 0 {
			return errors.New("has a path with a character that would be escaped, or means something else: it takes letters, digits and -._~!$&'()+,=:@")
		}
	}
	return nil
}

// String returns the scope as ParseScope reads it.
func (s Scope) String() string { return s.Host.Host() + s.Path }

// coversPath reports whether the escaped path of a request is in the scope. The scope's segments need
// plain slashes; below them an escaped slash belongs to a name, as in npm's @scope%2fname.
func (s Scope) coversPath(escaped string) bool {
	if s.Path == "" {
		return true
	}
	scopeSegments := strings.Split(s.Path, "/")
	segments := strings.Split(escaped, "/")
	if len(segments) < len(scopeSegments) {
		return false
	}
	lastIndex := len(scopeSegments) - 1
	for i, segment := range scopeSegments {
		plain, err := url.PathUnescape(segments[i])
		if err != nil {
			return false
		}
		isBelow := i == lastIndex && strings.HasPrefix(plain, segment+"/")
		if plain != segment && !isBelow {
			return false
		}
	}
	return true
}

// maxEscapeLevels is the number of times that a text may be escaped again.
const maxEscapeLevels = 4

// ambiguousPath describes why a server may read a path differently than the proxy. It returns "" for
// any other path. It checks each level of escapes, because a server may decode a path again.
func ambiguousPath(escaped string) string {
	for range maxEscapeLevels {
		if problem := ambiguousAtLevel(escaped); problem != "" {
			return problem
		}
		plain := unescape(escaped)
		if plain == escaped {
			return ""
		}
		escaped = plain
	}
	return "is escaped over and over"
}

// ambiguousAtLevel is ambiguousPath for one level of escapes: it does not decode those in path.
func ambiguousAtLevel(path string) string {
	if !utf8.ValidString(path) {
		return "is no UTF-8"
	}
	path = normalizedPath(path)
	switch {
	case strings.Contains(path, `\`):
		return "has a backslash"
	case strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "has a control character"
	}
	for segment := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name = strings.TrimSpace(name); name != "" && strings.Trim(name, ".") == "" {
			return "has a segment of dots"
		}
	}
	return ""
}

// normalizedPath returns a path as some servers read it: they normalise look-alike letters (UAX #15,
// NFKC) and drop soft hyphens.
func normalizedPath(path string) string {
	const softHyphen = "\u00ad"
	return norm.NFKC.String(strings.ReplaceAll(path, softHyphen, ""))
}

// unescape decodes each valid %xx and keeps invalid ones.
func unescape(text string) string {
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				plain = append(plain, c...)
				i += 2
				continue
			}
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}
