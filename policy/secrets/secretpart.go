package secrets

import "strings"

// secretPart returns the bounds of a value's really secret part. It excludes published parts: the prefix
// of a known token, a JSON Web Token's header, first and last line of a key, the scheme of an
// Authorization header, and of a URL everything but user and password, or without these, everything
// up to the host.
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
	if scheme := strings.Index(secret, "://"); scheme >= 0 && scheme < 20 {
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

// keyHeads lists the common beginnings of keys (RFC 5208, 5958 and 8410; PROTOCOL.key of OpenSSH):
// a mark near the beginning and the number of public characters, including the start of the public
// key.
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

// secretPartOfKey returns the bounds of a PEM or OpenSSH key's body without its head.
func secretPartOfKey(secret string) (from, to int) {
	from, to = strings.IndexByte(secret, '\n')+1, len(secret)
	if end := strings.LastIndex(secret, "-----END "); end > from {
		to = end
	}
	for _, head := range keyHeads {
		if strings.Contains(secret[from:min(from+64, to)], head.mark) {
			return min(from+head.length, to), to
		}
	}
	return from, to
}
