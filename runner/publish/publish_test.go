package publish

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// A push that could run what the agent wrote, or that would push the base as well, is left out.
func TestPushesOnlyWhereSafe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("hello.txt", "Hello.\n")
	for url, want := range map[string]string{
		w.repo.Dir: "", w.empty(): "does not have the base commit yet: push main first", w.inside(): "commands of the run can write",
	} {
		if got := w.whyNotPushed(&p, w.remote(url, "")); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	out := w.publish(w.toLocal(), p)
	if out.NotPushed != "the checkout has no origin" || out.Remote != "" || out.Commit == "" || w.tipOn(w.dir, taskBranch) != out.Commit || w.git(w.dir, "symbolic-ref", "--short", "HEAD") != taskBranch {
		t.Errorf("publication: %+v", out)
	}
	if out.Pull != nil || out.BodyFile != record.PullRequestFile || !w.Record.Has(record.PullRequestFile) {
		t.Errorf("publication: %+v", out)
	}
	w.git(w.dir, "remote", "add", "origin", "https://example.invalid/o/r.git")
	w.run("20260301T090000Z-0000000a") // with the new settings
	must.Do(w.t, w.toLocal().pushToOrigin(t.Context(), &p, out.Commit, nil, &out))
	must.Same(t, "the checkout's origin is not on this machine", out.NotPushed, "with an origin elsewhere", out)
	must.Same(t, "", out.Remote, "with an origin elsewhere", out)
}

// The run directory has the body of a commit even if its branch is locked or its push refused.
func TestWritesBodyOfFailedPublication(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hinder func(*world)
		says   string
	}{
		"the branch is locked": {func(w *world) { w.put(".git/refs/heads/"+taskBranch+".lock", "") }, taskBranch + ".lock is there"},
		"the push is refused": {func(w *world) {
			there := gittest.Repo{T: w.t, Dir: w.repo.Dir}
			there.Write("hooks/pre-receive", "#!/bin/sh\nexit 1\n")
			there.Chmod("hooks/pre-receive", 0o755)
			w.git(w.dir, "remote", "add", "origin", w.repo.Dir)
		}, "cannot be pushed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.hinder(w)
			w.run("20260301T090000Z-0000000a") // with the new settings
			var out Publication
			must.Fail(t, test.says, Publish(t.Context(), w.toLocal(), w.proposal("hello.txt", "Hello.\n"), &out))
			if out.BodyFile != record.PullRequestFile || !w.Record.Has(record.PullRequestFile) {
				t.Errorf("publication: %+v", out)
			}
		})
	}
}

// empty is a repository on this machine that has nothing.
func (w *world) empty() string {
	dir := filepath.Join(w.t.TempDir(), "empty.git")
	w.git(w.t.TempDir(), "init", "--quiet", "--bare", dir)
	return dir
}

// inside is a repository where commands of the run can write.
func (w *world) inside() string {
	dir := filepath.Join(w.dir, ".git", "inside.git")
	w.git(w.t.TempDir(), "clone", "--quiet", "--bare", w.repo.Dir, dir)
	return dir
}

// The pull request of the same change is opened where somebody took it away.
func TestCreatesMissingPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
	w.git(w.dir, "checkout", "--quiet", "main")
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State, p.Merged = "closed", true })
	w.run("20260301T100000Z-00000002")
	out := w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
	if !out.Unchanged || out.alreadyPublished() || out.Operation != "created" || out.Pull.Number != 2 {
		t.Errorf("publication: %+v", out)
	}
}

func TestFindsConflictingBranch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		theirs, branch string
		inTheWay       bool
	}{
		{"agent-ci", "agent-ci/issue-1", true},
		{"agent-ci/issue-1/wip", "agent-ci/issue-1", true},
		{"a/b", "a/b/c/d", true},
		{"Agent-ci", "agent-ci/issue-1", false},
		{"agent-ci/issue-10", "agent-ci/issue-1", false},
		{"agent-ci/issue-1", "agent-ci/issue-1", false},
	} {
		must.Same(t, test.inTheWay, conflictingBranch(map[string]string{test.theirs: ""}, test.branch) == test.theirs, test)
	}
}

// What another run pushed meanwhile goes first.
func TestYieldsToConcurrentPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("hello.txt", "Hello.\n")
	run := "Greet\n\n" + forge.TrailerRun + ": other\n" + forge.TrailerBase + ": " + p.Base.SHA
	for branch, test := range map[string]struct {
		content, message string
		reason           string
	}{
		"same-change":    {content: "Hello.\n", message: run},
		"another-change": {content: "Bye.\n", message: run, reason: "other_run"},
		"by-a-person":    {content: "Hello.\n", message: "By hand", reason: "foreign_commit"},
	} {
		p.Task.Branch = branch
		theirs := w.onForge(branch, "hello.txt", test.content, test.message)
		var out Publication
		err := w.toForge().commitAndPush(t.Context(), &p, nil, &out) // the branch was not there when it was looked for
		if test.reason != "" {
			outcometest.Want(t, err, test.reason)
			continue
		}
		must.Do(w.t, err)
		if !out.Unchanged || out.Commit != theirs {
			t.Errorf("publication: %+v", out)
		}
	}
}

// A run is killed while git pushes, makes another commit when it is resumed, and is killed again; then git's push
// arrives.
func TestAdoptsItsLatePush(t *testing.T) {
	t.Parallel()
	for name, publish := range map[string]func(w *world, p *Proposal, out *Publication) error{
		"before": func(w *world, p *Proposal, out *Publication) error {
			return Publish(t.Context(), w.toForge(), *p, out)
		},
		"during the push": func(w *world, p *Proposal, out *Publication) error {
			return w.toForge().commitAndPush(t.Context(), p, nil, out)
		},
		"of a repair": func(w *world, p *Proposal, out *Publication) error {
			p.Task.Repair = &intake.Repair{HeadSHA: p.Base.SHA}
			return Publish(t.Context(), w.toForge(), *p, out)
		},
	} {
		w := newWorld(t)
		p := w.proposal("hello.txt", "Hello.\n")
		p.EarlierCommit = p.Base.SHA // not the one that arrives
		late := w.onForge(taskBranch, "hello.txt", "Hello.\n", "Greet\n\n"+forge.TrailerRun+": "+p.RunID+"\n"+forge.TrailerBase+": "+p.Base.SHA)
		var out Publication
		must.Do(t, publish(w, &p, &out), name)
		must.Same(t, late, out.Commit, name)
		must.Same(t, late, w.git(w.dir, "rev-parse", "HEAD"), name, "in the checkout")
	}
}

func TestDescribesPublication(t *testing.T) {
	t.Parallel()
	pull := &forge.PullRequest{Number: 7, URL: "https://example.invalid/7"}
	green := transcript.Verify{Passed: true}
	for want, test := range map[string]struct {
		p      Publication
		reason string
	}{
		"The change is in the checkout, uncommitted; git status lists its files, and git diff shows all but new ones.":                      {Publication{}, "left_in_checkout"},
		"Pull request #7 holds the same change since an earlier run: https://example.invalid/7.":                                            {Publication{Verification: green, Commit: "0123456789abcdef", Unchanged: true, Pull: pull, Operation: "none"}, "pull_request"},
		"Branch b holds the same change since an earlier run (commit 0123456789ab).":                                                        {Publication{Verification: green, Commit: "0123456789abcdef", Branch: "b", Unchanged: true}, "committed"},
		"Pull request #7 was created: https://example.invalid/7.":                                                                           {Publication{Verification: green, Commit: "0123456789abcdef", Unchanged: true, Pull: pull, Operation: "created"}, "pull_request"},
		"The change is commit 0123456789ab on b, pushed to /srv/r.git; review it and merge.":                                                {Publication{Verification: green, Commit: "0123456789abcdef", Branch: "b", Remote: "/srv/r.git"}, "pushed"},
		"The change is commit 0123456789ab on b, pushed to /srv/r.git. Do not merge it.":                                                    {Publication{Commit: "0123456789abcdef", Branch: "b", Remote: "/srv/r.git"}, "pushed"},
		"Pull request #7 was created: https://example.invalid/7. Do not merge it.":                                                          {Publication{Commit: "0123456789abcdef", Pull: pull, Operation: "created"}, "pull_request"},
		"The change is commit 0123456789ab on b, pushed to /srv/r.git. Before you merge it, read in the body why it would be a draft.":      {Publication{Verification: green, Draft: true, Commit: "0123456789abcdef", Branch: "b", Remote: "/srv/r.git"}, "pushed"},
		"The change is commit 0123456789ab on b in the checkout, not pushed as the checkout has no origin; review it, and push the branch.": {Publication{Verification: green, Commit: "0123456789abcdef", Branch: "b", NotPushed: "the checkout has no origin"}, "committed"},
	} {
		must.Same(t, want, test.p.DescribeChange("the checkout"))
		must.Same(t, test.reason, test.p.changedReason())
	}
	must.Same(t, "The change was made in the replay's temporary tree, which is removed; give --out to keep it.", (&Publication{}).DescribeChange(GoneTree), "of a tree that is gone")
	must.Same(t, " Pull request #7 of an earlier run stays open: https://example.invalid/7. Comment on it to ask for more, or close it.", (&Publication{OpenPullOfTask: pull}).DescribeOpenPull(), "open")
}

func TestNamesWhoMovedBranchDuringRepair(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Greet\n\nAgent-CI-Run: 20260301T090000Z-0000000a\n": "skipped/other_run: Another run (20260301T090000Z-0000000a) pushed",
		"begin\n": "skipped/foreign_commit: Branch agent-ci/t was reset during the repair, to commit 0123456789ab,",
	} {
		err := refuseOvertaken("agent-ci/t", pushedTip(&forge.Commit{SHA: "0123456789abcdef", Message: message}))
		must.Contain(t, err.Error(), want)
	}
}
