// Package origin compares web origins: a token may only go to its own origin.
package origin

import (
	"net/url"
	"strings"
)

// Of returns u's scheme, host and port, with the scheme's default port (RFC 6454, section 4). URLs
// of one origin have equal results.
func Of(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
