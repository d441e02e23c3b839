package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// plannedPush is what is known of a push before the change exists.
type plannedPush struct {
	branch            string
	exists            bool
	forced            bool // the push replaces an earlier run's change
	title             string
	author, committer string // mail addresses; "" if the forge makes the commit
	signed            bool
}

// refusedBy reports whether a rule of a known kind refuses the push. Most kinds refuse changes of an existing branch.
func (p plannedPush) refusedBy(r forge.PushRule) bool {
	switch r.Kind {
	case "creation":
		return !p.exists
	case "non_fast_forward":
		return p.forced
	case "required_signatures":
		return !p.signed
	case "required_status_checks", "workflows":
		return p.exists || !r.NotOnCreation
	case "branch_name_pattern":
		return !p.exists && r.Pattern.Refuses(p.branch) && r.Pattern.Refuses("refs/heads/"+p.branch)
	case "commit_message_pattern":
		return p.title != "" && r.Pattern.Operator == "starts_with" && r.Pattern.Refuses(p.title)
	case "commit_author_email_pattern":
		return p.author != "" && r.Pattern.Refuses(p.author)
	case "committer_email_pattern":
		return p.committer != "" && r.Pattern.Refuses(p.committer)
	}
	return p.exists
}

// pushRefusal has what a rule demands or forbids, as the end of a sentence, and a remedy.
type pushRefusal struct{ demand, remedy string }

// pushRefusals maps kinds of rules to refusals. Rules about the change's content are left to the push.
var pushRefusals = map[string]pushRefusal{
	"creation":                    {"forbids to create that branch", ""},
	"update":                      {"forbids to change that branch", ""},
	"non_fast_forward":            {"forbids to replace the change of an earlier run there", "merge or delete the branch, or "},
	"required_signatures":         {"wants signed commits", "set pull_request.commit.sign, or "},
	"pull_request":                {"wants changes of that branch to come by pull requests", ""},
	"merge_queue":                 {"wants changes of that branch to come by the merge queue", ""},
	"required_deployments":        {"wants commits that were deployed before", ""},
	"code_scanning":               {"wants commits that were scanned before", ""},
	"required_status_checks":      {"wants commits that passed their checks elsewhere", ""},
	"workflows":                   {"wants commits that passed workflows elsewhere", ""},
	"branch_name_pattern":         {"wants names of branches %s", ""},
	"commit_message_pattern":      {"wants messages %s", "change pull_request.title, or "},
	"commit_author_email_pattern": {"wants mail addresses of authors %s", "set GIT_AUTHOR_EMAIL, or "},
	"committer_email_pattern":     {"wants mail addresses of committers %s", "set GIT_COMMITTER_EMAIL, or "},
}

// requirePermitted returns an error if the token may not push, or a rule would refuse the push. If rules
// cannot be read, the push decides.
func (f Forge) requirePermitted(ctx context.Context, branch string, base gitops.Base, pull job.PullRequest, current *tip) error {
	if err := f.requireTokenPush(ctx, branch, base); err != nil {
		return err
	}
	rules, err := f.Repo.PushRules(ctx, branch, current != nil)
	if err != nil {
		return ctx.Err()
	}
	planned := f.plannedPush(branch, base, pull, current)
	for _, rule := range rules {
		if refusal, applies := pushRefusals[rule.Kind]; applies && planned.refusedBy(rule) {
			return f.refusalError(rule, refusal, branch)
		}
	}
	return nil
}

// plannedPush returns what is known of the push of a branch before the change exists.
func (f Forge) plannedPush(branch string, base gitops.Base, pull job.PullRequest, current *tip) plannedPush {
	p := plannedPush{branch: branch, exists: current != nil, forced: current != nil && current.SHA != base.SHA, title: pull.Title, signed: pull.Commit.Sign != ""}
	if pull.Commit.Sign != signGitHub {
		p.author, p.committer = f.signature("AUTHOR", time.Time{}).Email, f.signature("COMMITTER", time.Time{}).Email
	}
	return p
}

// refusalError returns the error for a push that a rule would refuse.
func (f Forge) refusalError(rule forge.PushRule, refusal pushRefusal, branch string) *outcome.Stop {
	outcomeOfRun, reason := outcome.ForgeFailed, "push_refused"
	if rule.Kind == "branch_name_pattern" {
		outcomeOfRun, reason = outcome.InvalidInput, "branch_name"
	}
	demand := refusal.demand
	if strings.Contains(demand, "%s") {
		demand = fmt.Sprintf(demand, rule.Pattern)
	}
	return outcome.Stopf(outcomeOfRun, reason, "The branch %s could not be pushed to %s: %s %s. To continue, %sgive another name as pull_request.branch, let the token's account bypass that rule, or leave the branch out of it.",
		branch, f.Name(), rule.Setting, demand, refusal.remedy)
}

// requireTokenPush returns an error if the token may not push at all. Other failures are left to the push.
func (f Forge) requireTokenPush(ctx context.Context, branch string, base gitops.Base) error {
	from, err := f.Workspace.Store()
	if err != nil {
		return err
	}
	err = remote.TryPush(ctx, f.Remote(), remote.PushOptions{Branch: branch, Commit: base.SHA, From: from})
	if errors.Is(err, remote.ErrAuth) || errors.Is(err, remote.ErrForbidden) {
		return workspace.RemoteFailure("The branch "+branch+" could not be published", err)
	}
	return ctx.Err()
}
