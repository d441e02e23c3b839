package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestProposesBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to, p, err := w.propose(nil)
	must.Do(w.t, err)
	if p.RunID != "run-1" || p.Base.Branch != "main" || p.Summary != "Greets." || !p.Verification.Passed || p.InCheckout != nil || p.ChainHead == "" {
		t.Errorf("proposal: %+v", p)
	}
	if task := p.Task; task.Branch != "agent-ci/issue-7" || task.Issue.Number != 7 || task.Actor != "ada" || task.Author.Login != "grace" || task.InputDigest == "" {
		t.Errorf("task: %+v", task)
	}
	out := w.publish(to, p)
	must.Same(t, "Hello.", w.git(w.repo.Dir, "show", "agent-ci/issue-7:hello.txt"))
	must.Same(t, "created", out.Operation)
	must.Contain(t, w.git(w.repo.Dir, "log", "-1", "--format=%B", "agent-ci/issue-7"), "\nAgent-CI-Transcript: "+p.ChainHead+"\n")
	must.Same(t, "main", w.git(w.dir, "symbolic-ref", "--short", "HEAD"), "the checkout is on", "or was changed")
	must.Same(t, "", w.git(w.dir, "status", "--porcelain"), "the checkout is on", "or was changed")
}

func TestDropsInvalidTaskValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, p, err := w.propose(func(says *told) {
		says.task.InputDigest, says.task.Issue = "ab\nSigned-off-by: x", "#7"
		says.task.Actor, says.task.Author = "a b", "grace\n"
		says.started.Key, says.workspace.Branch = "greet", "agent-ci/greet"
	})
	must.Do(w.t, err)
	if task := p.Task; task.InputDigest != "" || task.Issue != nil || task.Actor != "" || task.Author != nil {
		t.Errorf("task: %+v", task)
	}
}

func TestRefusesInvalidBundles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		change func(*told)
		set    []string
		words  string
	}{
		"of another repository":     {change: func(s *told) { s.workspace.Repository = "octo/other" }, words: "it was made for octo/other, this is octo/widgets"},
		"a run id that is none":     {change: func(s *told) { s.started.RunID = "a b" }, words: "its run id is not one"},
		"a branch that is none":     {change: func(s *told) { s.workspace.Branch = "agent-ci/a..b" }, words: "its branch: "},
		"a branch of a person's":    {change: func(s *told) { s.workspace.Branch = "main" }, words: "its branch main is not below agent-ci/"},
		"a base that is none":       {change: func(s *told) { s.workspace.Base = "a..b" }, words: "its base: "},
		"another base":              {change: func(s *told) { s.workspace.Base = "next" }, words: "its base is next, and the default branch is main"},
		"another base than is set":  {set: []string{"repository.base=next"}, words: "its base is main, and repository.base is next"},
		"its base for its branch":   {change: func(s *told) { s.workspace.Branch = "main" }, set: []string{"pull_request.branch=main"}, words: "its branch is its base"},
		"a branch of another task":  {change: func(s *told) { s.workspace.Branch = "agent-ci/issue-8" }, words: "its branch agent-ci/issue-8 is not agent-ci/issue-7, that of its task"},
		"a job that is none":        {change: func(s *told) { s.started.Job = []byte("[]") }, words: "its job cannot be read"},
		"objects of another change": {change: func(s *told) { s.change.Files[0].Path = "other.txt" }, words: "its objects are not the change"},
		"a tree that is a path":     {change: func(s *told) { s.change.TreeSHA = "../../etc/passwd" }, words: "cannot be published"},
		"objects that are not there": {change: func(s *told) {
			s.change.TreeSHA = strings.Repeat("ab", 20)
		}, words: "make it again with agent-ci run"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t, w.set = t, test.set
			w.refused(test.change, "bundle", test.words)
		})
	}
	w.t, w.set = t, nil
	w.refused(func(s *told) { s.workspace.BaseSHA = "../../etc/passwd" }, "unknown_base", "")
	w.refused(func(s *told) { s.workspace.BaseSHA = strings.Repeat("1", 40) }, "unknown_base", "")
}

func TestProposalRequiresPack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.firstHalf(nil)
	must.Do(w.t, os.Remove(rec.Join(record.PackFile)))
	b, err := w.open(rec) // what is not there is for who needs it
	must.Do(w.t, err)
	_, _, err = w.half(rec).Propose(t.Context(), b)
	outcometest.Want(t, err, "bundle", "changes.pack is missing")
}

// The commit that a bundle names configures this half, so it must be one of the
// base branch.
func TestRefusesBaseOutsideBranch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		now   publish.BaseBranch
		words string
	}{
		"the newest":  {now: publish.BaseBranch{Tip: "aa", Relation: forge.Identical}},
		"an older":    {now: publish.BaseBranch{Tip: "bb", Relation: forge.Ahead}},
		"a newer":     {now: publish.BaseBranch{Tip: "bb", Relation: forge.Behind}, words: "its base commit aa is not part of main"},
		"one aside":   {now: publish.BaseBranch{Tip: "bb", Relation: forge.Diverged}, words: "its base commit aa is not part of main"},
		"of a branch": {now: publish.BaseBranch{}, words: "there is no branch main"},
	} {
		err := rules{}.RequireBase(gitops.Base{Branch: "main", SHA: "aa"}, test.now)
		if test.words == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if test.words != "" {
			outcometest.Want(t, err, "bundle", test.words)
		}
	}
	w := newWorld(t)
	w.git(w.dir, "checkout", "--quiet", "-b", "evil")
	w.commit(".github/agent-ci.yml", "version: 1\npolicy:\n  protect: []\n", "Be lax")
	w.git(w.dir, "push", "--quiet", w.repo.Dir, "evil")
	empty := func(says *told) {
		says.workspace.Base = "main"
		says.change, says.finished.Outcome, says.finished.Reason = &transcript.Change{}, string(outcome.NoChanges), "nothing_to_do"
	}
	w.refused(empty, "bundle", "is not part of main")
}

// A shallow checkout of a later commit does not have the base: it is fetched. The
// rules are those of the base, and of the newest one where the change follows.
func TestFetchesMissingBaseAndItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(".github/agent-ci.yml", "version: 1\npull_request:\n  labels: [old]\n", "Label")
	w.git(w.dir, "push", "--quiet", w.repo.Dir, "main")
	rec := w.firstHalf(nil)
	w.commit(".github/agent-ci.yml", "version: 1\npull_request:\n  labels: [new]\n", "Label otherwise")
	w.git(w.dir, "push", "--quiet", w.repo.Dir, "main")
	w.shows = filepath.Join(t.TempDir(), "shallow")
	w.git(w.dir, "clone", "--quiet", "--depth=1", "--origin=forge", "file://"+w.repo.Dir, w.shows)
	b := must.Get(w.open(rec))(w.t)
	to, p, err := w.half(rec).Propose(t.Context(), b)
	must.Do(w.t, err)
	must.Same(t, old, p.Base.SHA, "base", p.Job.PullRequest.Labels)
	must.Same(t, "old", strings.Join(p.Job.PullRequest.Labels, " "), "base", p.Job.PullRequest.Labels)
	if out := w.publish(to, p); out.Base.SHA == old {
		t.Errorf("publication: %+v", out)
	}
	must.Same(t, "new", strings.Join(w.repo.PullRequests()[0].Labels, " "), "labels")
}

func TestReadsRunStateFromBundle(t *testing.T) {
	b := Bundle{View: &transcript.View{Finished: &transcript.RunFinished{Outcome: string(outcome.BudgetExceeded), Reason: "tokens"}, ChangeState: transcript.ChangeState{Verify: &transcript.Verify{Attempt: 2}}}}
	if stop := b.limitStop(); stop == nil || !strings.Contains(stop.Message, "limits.tokens was used up") || b.verification().Attempt != 2 {
		t.Errorf("%v, %+v", stop, b.verification())
	}
	must.Same(t, "The run ended as budget_exceeded/tokens: there is nothing to publish.", b.NothingToPublish().Message)
	b.View.Workspace.BaseSHA = "aa"
	must.Same(t, "aa", b.base(), "base")
	b.View.Change = &transcript.Change{BaseSHA: "bb"} // the change followed its base
	must.Same(t, "bb", b.base(), "base")
}

func TestProposalChecksPrerequisites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set = []string{"pull_request.commit.sign=ssh", "pull_request.commit.key_env=KEY"}
	w.refused(nil, "signing_key", "has no key")
	w.set = nil
	to, p, err := w.propose(nil)
	must.Do(w.t, err)
	w.publish(to, p)
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State = "closed" })
	w.refused(nil, "pull_request_closed", "reopen it")
	rec := w.firstHalf(nil)
	b, err := w.open(rec)
	must.Do(w.t, err)
	half := w.half(rec)
	half.Forge = func(*job.Job) (publish.Forge, error) {
		return publish.Forge{}, outcome.Stopf(outcome.InvalidInput, "no_token", "There is no token.")
	}
	_, _, err = half.Propose(t.Context(), b)
	outcometest.Want(t, err, "no_token")
}
