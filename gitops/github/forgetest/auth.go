package forgetest

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// credentials is what came with a request.
type credentials int

const (
	missing credentials = iota
	wrong
	right
)

// credentialsOf takes the token as REST clients send it (Bearer or token) and
// as git does (the password of Basic, with any user).
func (f *Forge) credentialsOf(r *http.Request) credentials {
	header := r.Header.Get("Authorization")
	if header == "" {
		return missing
	}
	scheme, token, _ := strings.Cut(header, " ")
	switch strings.ToLower(scheme) {
	case "basic":
		_, token, _ = r.BasicAuth()
	case "bearer", "token":
	default:
		return wrong
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(f.Token)) == 1 {
		return right
	}
	return wrong
}
