package github

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// loginPattern is what an account can be called: [bot] ends those of Apps, _
// stands in those of enterprises.
var loginPattern = lazily(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?(?:\[bot\])?$`)

func (r *repository) Permission(ctx context.Context, login string) (forge.Permission, error) {
	what := call{doing: fmt.Sprintf("ask for the permission of %.100q in %s", login, r.fullName), permission: "metadata: read"}
	none := forge.Permission{Level: "none"}
	if err := r.check(what); err != nil {
		return none, err
	}
	if !loginPattern().MatchString(login) {
		return none, &forge.Error{Kind: forge.Invalid, Doing: what.doing, Message: "that is not the name of an account", Remedy: "write the login without @"}
	}
	var reply struct {
		Permission string `json:"permission"`
		RoleName   string `json:"role_name"` // not in go-github v60
	}
	err := r.do(ctx, what, func() error {
		return r.send(ctx, http.MethodGet, fmt.Sprintf("repos/%s/collaborators/%s/permission", r.fullName, login), nil, &reply)
	})
	switch {
	case forge.KindOf(err) == forge.NotFound:
		return none, nil
	case err != nil:
		return none, err
	}
	return forge.Permission{Level: reply.Permission, Role: reply.RoleName}, nil
}
