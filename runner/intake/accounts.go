package intake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// distrust says why the words of an account in a repository do not count; ""
// when they do.
func (s *Source) distrust(ctx context.Context, in forge.Repository, who forge.User) (why string, err error) {
	trust := s.Job.Trust
	if who.Bot || strings.HasSuffix(who.Login, "[bot]") {
		if slices.ContainsFunc(trust.Bots, func(bot string) bool { return strings.EqualFold(bot, who.Login) }) {
			return "", nil
		}
		return fmt.Sprintf("the bot %s is not in trust.bots", who.Login), nil
	}
	permission, err := s.Accounts.permission(ctx, in, who.Login)
	switch {
	case forge.KindOf(err) == forge.Invalid: // an account that is gone has no name
		return fmt.Sprintf("the account %q cannot be asked about", who.Login), nil
	case err != nil:
		return "", ForgeFailure("The role of "+who.Login+" cannot be asked for", err)
	case roleCounts(permission, trust.Roles):
		return "", nil
	}
	return fmt.Sprintf("the account %s has the role %q in %s, and trust.roles is %s",
		who.Login, cmp.Or(permission.Role, permission.Level), in.Name(), strings.Join(trust.Roles, ", ")), nil
}

// ranks orders the roles that GitHub gives in a repository.
var ranks = map[string]int{"read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

// roleCounts compares with the least of the trusted roles. A role of the
// organisation's own counts as the level that it builds on.
func roleCounts(p forge.Permission, trusted []string) bool {
	has := max(ranks[p.Level], ranks[p.Role])
	return slices.ContainsFunc(trusted, func(role string) bool { return ranks[role] > 0 && has >= ranks[role] })
}

// Accounts knows what accounts may do. It asks once for each account in a
// repository.
type Accounts struct {
	permissions map[string]forge.Permission
}

func (a *Accounts) permission(ctx context.Context, in forge.Repository, login string) (forge.Permission, error) {
	key := strings.ToLower(in.Name() + " " + login)
	if known, asked := a.permissions[key]; asked {
		return known, nil
	}
	p, err := in.Permission(ctx, login)
	if err != nil {
		return p, err
	}
	if a.permissions == nil {
		a.permissions = map[string]forge.Permission{}
	}
	a.permissions[key] = p
	return p, nil
}

// asked is how many accounts were asked for.
func (a *Accounts) asked() int { return len(a.permissions) }
