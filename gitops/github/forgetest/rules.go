package forgetest

import (
	"net/http"
	"path"
	"strconv"
)

// Rule is a rule for branches. Each gets its own ruleset.
type Rule struct {
	Type       string
	Parameters map[string]any
	Branches   string // a pattern of path.Match; "" for all branches
	Ruleset    string // name of the ruleset
	Bypass     string // whether the token's account can bypass it: always, pull_requests_only, never, exempt; "" is not reported
}

// Protection is the protection of a branch. It applies to administrators, unless ExceptAdmins is
// set.
type Protection struct {
	ExceptAdmins, Locked, Signed bool
	Checks                       []string
	Pulls                        bool
	PullsExcept                  []User // accounts that may push without a pull request
}

// forbidsPushes reports whether the token's account has a role without the permission to push. The
// caller holds the lock of the forge.
func (r *Repository) forbidsPushes() bool {
	role, named := r.Permissions[r.forge.user.Login]
	return named && levels[role] != "admin" && levels[role] != "write"
}

// listRules lists the rules that apply to a branch.
func listRules(_ *Forge, c *call) answer {
	rules := []object{}
	for i, rule := range c.repository.Rules {
		if fits, _ := path.Match(rule.Branches, c.PathValue("branch")); rule.Branches != "" && !fits {
			continue
		}
		shown := object{"type": rule.Type, "ruleset_id": i + 1, "ruleset_source_type": "Repository", "ruleset_source": c.repository.fullName()}
		if rule.Parameters != nil {
			shown["parameters"] = rule.Parameters
		}
		rules = append(rules, shown)
	}
	return ok(rules)
}

// getRuleset answers with the ruleset of a rule. Its id is the position of the rule, from 1.
func getRuleset(f *Forge, c *call) answer {
	id, err := strconv.Atoi(c.PathValue("id"))
	if err != nil || id < 1 || id > len(c.repository.Rules) {
		return notFound()
	}
	rule := c.repository.Rules[id-1]
	shown := object{
		"id": id, "name": rule.Ruleset, "target": "branch", "source_type": "Repository", "source": c.repository.fullName(), "enforcement": "active",
		"_links": object{"html": object{"href": f.pageURL(c.repository) + "/rules/" + c.PathValue("id")}},
	}
	if rule.Bypass != "" {
		shown["current_user_can_bypass"] = rule.Bypass
	}
	return ok(shown)
}

// getProtection answers only to administrators.
func getProtection(f *Forge, c *call) answer {
	if c.credentials != right || c.repository.role(f.user.Login) != "admin" {
		return failure(http.StatusForbidden, "Resource not accessible by integration")
	}
	branch := c.PathValue("branch")
	p, protected := c.repository.Protections[branch]
	if _, there := c.repository.branch(branch); !there {
		return failure(http.StatusNotFound, "Branch not found")
	}
	if !protected {
		return failure(http.StatusNotFound, "Branch not protected")
	}
	shown := object{
		"enforce_admins": object{"enabled": !p.ExceptAdmins}, "lock_branch": object{"enabled": p.Locked}, "required_signatures": object{"enabled": p.Signed},
	}
	if p.Checks != nil {
		shown["required_status_checks"] = object{"contexts": p.Checks, "checks": []object{}}
	}
	if p.Pulls {
		reviews := object{"dismiss_stale_reviews": false, "require_code_owner_reviews": false}
		if p.PullsExcept != nil {
			reviews["bypass_pull_request_allowances"] = object{"users": showAll(p.PullsExcept, f.showUser), "teams": []object{}, "apps": []object{}}
		}
		shown["required_pull_request_reviews"] = reviews
	}
	return ok(shown)
}
