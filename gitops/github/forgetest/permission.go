package forgetest

import (
	"cmp"
	"strings"
)

// levels are what the older field says of a role.
var levels = map[string]string{"admin": "admin", "maintain": "write", "write": "write", "triage": "read", "read": "read", "none": "none"}

func getPermission(f *Forge, c *call) answer {
	if c.credentials == missing {
		return failure(401, "Requires authentication")
	}
	login := c.PathValue("login")
	role := c.repository.role(login)
	user := f.showUser(User{Login: login})
	user["role_name"] = role
	return ok(object{"permission": cmp.Or(levels[role], "read"), "role_name": role, "user": user})
}

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
