package runner

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// lostRace is the end of a run whose branch somebody moved while it was about
// to push. Another run of the same task goes first; what it pushed may even be
// the same.
func (r *run) lostRace(ctx context.Context, err error) error {
	if !errors.As(err, new(*remote.LeaseError)) {
		return err
	}
	now, tipErr := r.publishedTip(ctx)
	switch {
	case tipErr != nil || now == nil:
		return err
	case !now.ours:
		return foreignCommit(r.branch, now)
	case now.tree == string(r.changes.Tree) && now.parent == r.base.SHA:
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "other_run",
		"Another run of this task (%s) pushed to %s first, and its change stands there.", now.run, r.branch).Because(err)
}

// proposeByHand says how the pull request that a run may not open is opened. The
// files of a step of GitHub Actions are gone when somebody reads it.
func (r *run) proposeByHand() string {
	if r.env.InActions() {
		return fmt.Sprintf("once that is allowed the same event opens the pull request, or by hand: %s/%s/compare/%s...%s?expand=1",
			r.repo.serverURL, r.repo.Name(), url.PathEscape(r.base.Branch), url.PathEscape(r.branch))
	}
	title := ""
	if view, err := r.rec.View(); err == nil {
		title = r.title(view)
	}
	draft := ""
	if r.draft() {
		draft = " --draft"
	}
	return fmt.Sprintf("the body lies in %s; by hand: gh pr create --repo %s --base %s --head %s --title %s --body-file %s%s",
		r.rec.Join(record.PullRequestFile), r.repo.Name(), r.base.Branch, r.branch, shellQuoted(title), shellQuoted(r.rec.Join(record.PullRequestFile)), draft)
}

// shellQuoted is text as one word for a POSIX shell, on one line.
func shellQuoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// mayPushWorkflows finds out, before anything is pushed, that the token may not
// push a change of workflow files: GITHUB_TOKEN never may, a classic token needs
// the scope workflow. Of other tokens it can't be known.
func (r *run) mayPushWorkflows(ctx context.Context) error {
	if r.publishMode() != publishGitHub {
		return nil
	}
	file := ""
	for _, f := range r.changes.Files {
		if strings.HasPrefix(f.Path, workflowsFolder) {
			file = markdown.FileName(f.Path)
		}
	}
	if file == "" {
		return nil
	}
	if r.forge.LacksScope("workflow") {
		return outcome.Stopf(outcome.ForgeFailed, "workflow_permission",
			"The change touches %s, and the token lacks the scope workflow; give it that scope, or keep workflow files out of the task.", file)
	}
	if ofWorkflow, _ := r.forge.HasWorkflowToken(ctx); ofWorkflow { // not to know is to try
		return outcome.Stopf(outcome.ForgeFailed, "workflow_permission",
			"The change touches %s, which GITHUB_TOKEN of GitHub Actions may never push; give the token of an app with the permission workflows: write, or a personal one.", file)
	}
	return nil
}

const workflowsFolder = ".github/workflows/"

// noteChecks tells, in the body too, that checks won't run by themselves on a
// pull request that GITHUB_TOKEN opens.
func (r *run) noteChecks(ctx context.Context) {
	if r.joins() {
		return
	}
	if ofWorkflow, _ := r.forge.HasWorkflowToken(ctx); ofWorkflow {
		r.warnInBody("checks_wait", "The pull request comes from GITHUB_TOKEN of GitHub Actions: its workflows wait until somebody approves them on its page. The token of an app or a person avoids that.")
	}
}

// adoptPullRequest brings the pull request up to date that another run opened
// between the look for one and the opening.
func (r *run) adoptPullRequest(ctx context.Context, title string, posts body.Posts) error {
	open, err := r.findPullRequest(ctx)
	if err != nil {
		return err
	}
	if open == nil || open.State != "open" || open.Base != r.base.Branch {
		return outcome.Stopf(outcome.ForgeFailed, string(forge.Invalid), "GitHub says that there is a pull request of %s, and lists none; run again.", r.branch)
	}
	return r.updatePullRequest(ctx, open, title, posts)
}
