package secrets

import "strings"

// secretPart returns the bounds of the part of a value that is really secret. It excludes public parts:
// the prefix of a known token, the header of a JSON Web Token, the first and last line of a key, and
// the scheme of an Authorization header. The secret part of a URL is its user and password, or if it
// has none, everything after the host.
func secretPart(secret string) (from, to int) {
	const jwt, pem = "eyJ", "-----BEGIN "
	switch {
	case strings.HasPrefix(secret, jwt) && strings.Contains(secret, "."):
		return strings.IndexByte(secret, '.') + 1, len(secret)
	case strings.HasPrefix(secret, pem) && strings.Contains(secret, "\n"):
		return secretPartOfKey(secret)
	}
	for _, scheme := range []string{"Bearer ", "bearer ", "Basic ", "basic ", "token "} {
		if rest, ok := strings.CutPrefix(secret, scheme); ok {
			from, to = secretPart(rest)
			return from + len(scheme), to + len(scheme)
		}
	}
	if scheme := strings.Index(secret, "://"); scheme >= 0 && scheme < 20 { // no scheme is longer
		return secretPartOfURL(secret, scheme+len("://"))
	}
	for _, s := range shapes {
		for _, prefix := range s.prefixes {
			if len(prefix) > from && strings.HasPrefix(secret, prefix) {
				from = len(prefix)
			}
		}
	}
	return from, len(secret)
}

// secretPartOfURL returns the bounds of user and password of a URL, or else of the part after its host.
func secretPartOfURL(secret string, host int) (from, to int) {
	path := host + len(secret[host:])
	if at := strings.IndexAny(secret[host:], "/?#"); at >= 0 {
		path = host + at
	}
	if user := strings.LastIndexByte(secret[host:path], '@'); user >= 0 {
		return host, host + user
	}
	return path, len(secret)
}

// keyHeads lists how keys of one kind begin (RFC 5208, 5958 and 8410; PROTOCOL.key of OpenSSH). mark is
// base64 text near the beginning. length is the number of public characters, including the start of
// the public key. All other keys have the empty mark.
var keyHeads = []struct {
	mark   string
	length int
}{
	{"ANBgkqhkiG9w0BAQEFAASC", 52},
	{"MBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg", 48},
	{"MC4CAQAwBQYDK2VwBCIEI", 22},
	{"b3BlbnNzaC1rZXktdjEA", 140},
	{"", 20},
}

// secretPartOfKey returns the bounds of the base64 text of a PEM or OpenSSH key. They exclude the
// BEGIN and END lines, and the beginning that all keys of its kind share (keyHeads).
func secretPartOfKey(secret string) (from, to int) {
	from, to = strings.IndexByte(secret, '\n')+1, len(secret)
	if end := strings.LastIndex(secret, "-----END "); end > from {
		to = end
	}
	for _, head := range keyHeads {
		// The first line of base64 has 64 characters.
		if strings.Contains(secret[from:min(from+64, to)], head.mark) {
			return min(from+head.length, to), to
		}
	}
	return from, to
}
