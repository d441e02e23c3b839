// Package origin owns what counts as one place of the web: who gets a token
// may be trusted with it at that place only. It knows URLs and nothing else.
package origin

import (
	"net/url"
	"strings"
)

// Of is scheme, host and port of u, the port filled in where it is the scheme's
// own (RFC 6454, section 4). Two URLs are of one origin when these are equal.
func Of(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
