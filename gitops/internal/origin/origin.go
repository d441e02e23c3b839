// Package origin compares origins of URLs: a token may only be sent to its own origin.
package origin

import (
	"net/url"
	"strings"
)

// Of returns scheme, host and port of a URL, with the default port of the scheme (RFC 6454, section
// 4). URLs of one origin have equal results.
func Of(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
