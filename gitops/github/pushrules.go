package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// branchRule is a rule of a ruleset.
type branchRule struct {
	Type       string
	Ruleset    int64 `json:"ruleset_id"`
	Parameters struct {
		Operator, Pattern string
		Negate            bool
		NotOnCreation     bool `json:"do_not_enforce_on_create"`
	}
}

// PushRules returns the branch's rules, those of rulesets and of its protection. It omits rules that the account may be
// able to bypass. A branch that does not exist has no protection.
func (r *repository) PushRules(ctx context.Context, branch string, exists bool) ([]forge.PushRule, error) {
	call := apiCall{action: fmt.Sprintf("read the rules on the branch %s of %s", branch, r.fullName), permission: "metadata: read", ref: headsPrefix + branch}
	var listed []branchRule
	if err := r.getJSON(ctx, call, "rules/branches/"+url.PathEscape(branch)+"?per_page=100", &listed); err != nil {
		return nil, err
	}
	var rules []forge.PushRule
	settings := map[int64]string{}
	for _, each := range listed {
		setting, known := settings[each.Ruleset]
		if !known {
			setting = r.describeBindingRuleset(ctx, call, each.Ruleset)
			settings[each.Ruleset] = setting
		}
		if setting != "" { // the account cannot bypass it
			p := each.Parameters
			rules = append(rules, forge.PushRule{Kind: each.Type, Setting: setting, NotOnCreation: p.NotOnCreation, Pattern: forge.Pattern{Operator: p.Operator, Text: p.Pattern, Negate: p.Negate}})
		}
	}
	if exists {
		rules = append(rules, r.protectionRules(ctx, call, branch)...)
	}
	return rules, ctx.Err()
}

// getJSON sends a GET request that go-github does not support, and decodes the reply into into. path is
// relative to the repository.
func (r *repository) getJSON(ctx context.Context, call apiCall, path string, into any) error {
	return r.runCall(ctx, call, func() error {
		return r.sendJSON(ctx, http.MethodGet, "repos/"+r.fullName+"/"+path, nil, into)
	})
}

// describeBindingRuleset describes a ruleset that the account's pushes cannot bypass. It returns "" for a
// ruleset that they can bypass, or that cannot be read.
func (r *repository) describeBindingRuleset(ctx context.Context, call apiCall, id int64) string {
	var set struct {
		Name, Source string
		Bypass       string                                `json:"current_user_can_bypass"`
		Links        struct{ HTML *struct{ Href string } } `json:"_links"`
	}
	err := r.getJSON(ctx, call, fmt.Sprintf("rulesets/%d", id), &set)
	if err != nil || set.Bypass != "never" && set.Bypass != "pull_requests_only" {
		return ""
	}
	where := set.Source
	if set.Links.HTML != nil {
		where = cmp.Or(set.Links.HTML.Href, where)
	}
	return r.printable(fmt.Sprintf("the ruleset %q (%s)", set.Name, where))
}

// enabled is a setting of a branch's protection.
type enabled struct{ Enabled bool }

// protectionRules returns the rules in a branch's protection that apply to everybody. It omits rules
// with exceptions for administrators or other accounts. Only administrators may read the
// protection; for others the result is empty.
func (r *repository) protectionRules(ctx context.Context, call apiCall, branch string) []forge.PushRule {
	var p struct {
		EnforceAdmins enabled                      `json:"enforce_admins"`
		Lock          enabled                      `json:"lock_branch"`
		Signatures    enabled                      `json:"required_signatures"`
		Checks        *struct{ Contexts []string } `json:"required_status_checks"`
		Reviews       *struct {
			Exempt *struct{} `json:"bypass_pull_request_allowances"`
		} `json:"required_pull_request_reviews"`
	}
	if r.getJSON(ctx, call, "branches/"+url.PathEscape(branch)+"/protection", &p) != nil || !p.EnforceAdmins.Enabled {
		return nil
	}
	setting := r.printable(fmt.Sprintf("the protection of the branch %s of %s (Settings, Branches)", branch, r.fullName))
	var rules []forge.PushRule
	add := func(kind string, applies bool) {
		if applies {
			rules = append(rules, forge.PushRule{Kind: kind, Setting: setting})
		}
	}
	add("update", p.Lock.Enabled)
	add("required_signatures", p.Signatures.Enabled)
	add("required_status_checks", p.Checks != nil && len(p.Checks.Contexts) > 0)
	add("pull_request", p.Reviews != nil && p.Reviews.Exempt == nil)
	return rules
}
