package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// greeted is README.md with another end, and begun with another beginning.
const (
	greeted = "one\ntwo\nthree\nfour\nfive\nsix\nHello.\n"
	begun   = "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\n"
)

// rules are BundleRules with a job that names its base.
type rules struct{ refusal, noJob error }

func (r rules) RequireBase(gitops.Base, BaseBranch) error { return r.refusal }
func (r rules) JobOn(_ context.Context, base gitops.Base) (*job.Job, error) {
	return &job.Job{OnVerifyFailed: "none", Task: job.Task{Expects: "change"}, PullRequest: job.PullRequest{Title: "On " + base.SHA}}, r.noJob
}

type checks func(old transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error)

func (c checks) VerifyOnNewBase(_ context.Context, old transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error) {
	return c(old, change)
}

// The checks run on each new base, and what they say decides.
func TestChecksRunOnEachNewBase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		passed bool
		err    error
	}{
		"green": {passed: true}, "red": {}, "they end the run": {err: errors.New("the sandbox is gone")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.proposal("README.md", greeted)
			judgedBy := "" // the title in the job that decides
			p.Bundle = rules{}
			p.Judge = func(_ context.Context, j *job.Job, _ *gitops.ChangeSet) error {
				judgedBy = j.PullRequest.Title
				return nil
			}
			p.Verification.Rows = []transcript.VerifyRow{{Name: "test", Passed: true, After: "green"}}
			moves := []string{w.onForge("main", "a.txt", "a\n", "Go on")}
			var ran []string
			p.Checks = checks(func(old transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error) {
				ran = append(ran, change.Base.SHA)
				moves = append(moves, w.onForge("main", "a.txt", fmt.Sprintln(len(ran)), "Go on")) // while they run
				return transcript.Verify{Attempt: old.Attempt + 1, Passed: test.passed, Rows: old.Rows}, test.err
			})
			var out Publication
			must.Is(t, test.err, Publish(t.Context(), w.toForge(), p, &out))
			if wanted := moves[:min(len(moves)-1, maxRebases)]; test.err == nil && !slices.Equal(ran, wanted) || out.Verification.Attempt != len(ran) {
				t.Errorf("checked on %q, the base was %q; attempt %d", ran, moves, out.Verification.Attempt)
			}
			last := ran[len(ran)-1]
			if (out.Commit != "") != test.passed || out.Base.SHA != last || judgedBy != "On "+last {
				t.Errorf("judged by the job %q: %+v", judgedBy, out)
			}
			if view, err := w.Record.View(); err != nil || view.Change.BaseSHA != last || !w.Record.Has(record.WorkPackFile) {
				t.Errorf("the record has a change on %q, or the work is not kept: %v", view.Change.BaseSHA, err)
			}
		})
	}
}

func TestPublishesNothingOnUnfollowableBase(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for name, test := range map[string]struct {
		change func(p *Proposal)
		moved  string
		reason string
	}{
		"a conflict": {moved: "one\ntwo\nthree\nfour\nfive\nsix\nBye.\n", reason: "base_moved"},
		"it is refused": {moved: begun, change: func(p *Proposal) {
			p.Judge = func(context.Context, *job.Job, *gitops.ChangeSet) error { return no }
		}},
		"no job is there": {moved: begun, change: func(p *Proposal) {
			p.Bundle = rules{noJob: no}
		}},
		"it may not be so": {moved: begun, change: func(p *Proposal) { p.Bundle = rules{refusal: no} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.proposal("README.md", greeted)
			if test.change != nil {
				test.change(&p)
			}
			w.onForge("main", "README.md", test.moved, "Go on")
			if test.reason == "" {
				var out Publication
				must.Is(t, no, Publish(t.Context(), w.toForge(), p, &out), out)
				must.Same(t, "", out.Commit, out)
				return
			}
			if _, stop := w.refused(w.toForge(), p, test.reason); !strings.Contains(stop.Message, "README.md (") || !strings.Contains(stop.Message, record.PatchFile) {
				t.Error(stop.Message)
			}
		})
	}
}

// branches is a repository whose branch and history are what a test says.
type branches struct {
	forge.Repository
	tip      *forge.Commit
	relation forge.Relation
	err      error
}

func (b branches) Branch(context.Context, string) (*forge.Commit, error) { return b.tip, b.err }
func (b branches) Compare(context.Context, string, string) (forge.Relation, error) {
	return b.relation, b.err
}

func TestLooksUpBaseBranch(t *testing.T) {
	t.Parallel()
	base := gitops.Base{Branch: "main", SHA: "aa"}
	for name, test := range map[string]struct {
		in    branches
		moved bool
		want  BaseBranch
	}{
		"gone":     {in: branches{}},
		"the same": {in: branches{tip: &forge.Commit{SHA: "aa"}}, want: BaseBranch{"aa", forge.Identical}},
		"ahead":    {in: branches{tip: &forge.Commit{SHA: "bb"}, relation: forge.Ahead}, want: BaseBranch{"bb", forge.Ahead}, moved: true},
		"behind":   {in: branches{tip: &forge.Commit{SHA: "bb"}, relation: forge.Behind}, want: BaseBranch{"bb", forge.Behind}},
		"diverged": {in: branches{tip: &forge.Commit{SHA: "bb"}, relation: forge.Diverged}, want: BaseBranch{"bb", forge.Diverged}, moved: true},
	} {
		got, err := LookUpBase(t.Context(), test.in, base)
		if err != nil || got != test.want || got.hasMoved() != test.moved {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	outcometest.Want(t, must.Err(LookUpBase(t.Context(), branches{err: &forge.Error{Kind: forge.Unavailable, Message: "it is down"}}, base)), "unavailable")
}

func TestCountsUnnamedConflicts(t *testing.T) {
	t.Parallel()
	var conflicts []gitops.MergeConflict
	for i := range maxConflictsShown + 3 {
		conflicts = append(conflicts, gitops.MergeConflict{Path: fmt.Sprintf("f%d", i), Why: "both changed it"})
	}
	if got := DescribeConflicts(conflicts); !strings.HasSuffix(got, "f9 (both changed it) and 3 more") {
		t.Error(got)
	}
}

// A run goes on from the change of its pull request, unless a person's commit is last. How the change is merged
// onto a base that moved is a script's matter.
func TestFindsEarlierChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(w.toForge(), w.proposal("README.md", greeted))
	w.git(w.dir, "checkout", "--quiet", "main")
	earlier := func() (*MergedChange, error) {
		w.t.Helper()
		w.run("20260301T100000Z-00000002")
		to := w.toForge()
		return to.EarlierChange(t.Context(), to.Repo, &forge.PullRequest{Number: 1, Head: taskBranch, Base: "main"}, w.Workspace.Base(), func(_ context.Context, whole *gitops.ChangeSet) (*gitops.ChangeSet, error) { return whole, nil })
	}
	laid, err := earlier()
	if err != nil || len(laid.Change.Files) != 1 || laid.Change.Files[0].Path != "README.md" || laid.Moved || !laid.Clean() {
		t.Fatalf("on its own base: %+v, %v", laid, err)
	}
	w.onForge(taskBranch, "theirs.txt", "Theirs.\n", "By hand")
	outcometest.Want(t, must.Err(earlier()), "foreign_commit")
	w.git(w.repo.Dir, "update-ref", "-d", "refs/heads/"+taskBranch)
	if laid, err = earlier(); laid != nil || err != nil {
		t.Errorf("of a branch that is gone: %+v, %v", laid, err)
	}
}

// What has no lines to merge is as on the new base, and the agent is told of both sides.
func TestDescribesUnmergedConflicts(t *testing.T) {
	t.Parallel()
	laid := &MergedChange{}
	for i := range maxConflictsForAgent + 2 {
		laid.Conflicts = append(laid.Conflicts, gitops.MergeConflict{Path: fmt.Sprintf("f\n%d", i), Why: "deleted here and changed on the new base"})
	}
	words := laid.DescribeUnmerged()
	must.Contain(t, words, `- "f\n0": deleted here and changed on the new base ("here" is the earlier change); it is as on the new base`, "- and 2 more\n")
	must.Lack(t, words, "Between the marks")
}

// A bundle's pack and the checkout stay as they are: its closed transcript has the pack's digest.
func TestBundleKeepsItsPack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("README.md", greeted)
	w.git(w.dir, "checkout", "--quiet", ".")
	p.InCheckout = nil
	pack := must.Get(w.Record.Read(record.PackFile))(w.t)
	w.onForge("main", "README.md", begun, "Begin earlier")
	w.publish(w.toForge(), p)
	after := must.Get(w.Record.Read(record.PackFile))(w.t)
	if !bytes.Equal(pack, after) || w.Record.Has(record.WorkPackFile) || w.git(w.dir, "status", "--porcelain") != "" {
		t.Error("the pack or the checkout was changed")
	}
}
