package forgetest

import (
	"cmp"
	"crypto/subtle"
	"net/http"
	"strings"
)

// credentials says whether a request has credentials, and whether they are valid.
type credentials int

const (
	missing credentials = iota
	wrong
	right
)

// credentialsOf compares the token of a request with the forge's. REST clients send it as Bearer or
// token, git as the password of Basic with any user.
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

const viewerPath = "/user"

func getViewer(f *Forge, c *call) answer {
	f.note("GET "+viewerPath, c)
	if c.credentials != right {
		return failure(http.StatusUnauthorized, "Requires authentication")
	}
	return ok(f.showUser(f.user))
}

// levels maps a role to the value of the older field "permission".
var levels = map[string]string{"admin": "admin", "maintain": "write", "write": "write", "triage": "read", "read": "read", "none": "none"}

// getPermission answers with the role of an account in a repository, and the older level.
func getPermission(f *Forge, c *call) answer {
	if c.credentials == missing {
		return failure(http.StatusUnauthorized, "Requires authentication")
	}
	login := c.PathValue("login")
	role := c.repository.role(login)
	user := f.showUser(User{Login: login})
	user["role_name"] = role
	return ok(object{"permission": cmp.Or(levels[role], "read"), "role_name": role, "user": user})
}

// SetRole gives an account a role. It may be called while the forge serves requests.
func (r *Repository) SetRole(login, role string) {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	if r.Permissions == nil {
		r.Permissions = map[string]string{}
	}
	r.Permissions[login] = role
}

// role returns the role of an account. The default is read, and admin for octocat.
func (r *Repository) role(login string) string {
	for name, role := range r.Permissions {
		if strings.EqualFold(name, login) {
			return role
		}
	}
	if strings.EqualFold(login, octocat.Login) {
		return "admin"
	}
	return "read"
}
