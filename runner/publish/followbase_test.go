package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// greeted is README.md with another end, and begun with another beginning.
const (
	greeted = "one\ntwo\nthree\nfour\nfive\nsix\nHello.\n"
	begun   = "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	both    = "zero\none\ntwo\nthree\nfour\nfive\nsix\nHello.\n"
)

func TestChangeFollowsItsBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("README.md", greeted)
	moved := w.onForge("main", "README.md", begun, "Begin earlier")
	out := w.publish(w.toForge(), p)
	if text := w.git(w.repo.Dir, "show", taskBranch+":README.md") + "\n"; text != both {
		t.Errorf("the branch has:\n%s", text)
	}
	if out.Base.SHA != moved || w.git(w.repo.Dir, "rev-parse", taskBranch+"^") != moved || out.Change == p.Change {
		t.Errorf("base %s, want %s", out.Base.SHA, moved)
	}
	w.wantWarning("base_moved")
	if !w.Record.Has(record.WorkPackFile) || w.git(w.dir, "status", "--porcelain") != "" || w.git(w.dir, "symbolic-ref", "--short", "HEAD") != "main" {
		t.Error("the checkout was not put back, or the work is not kept")
	}
	view, err := w.Record.View()
	w.must(err)
	if view.Change.BaseSHA != moved {
		t.Errorf("the transcript tells of a change on %q", view.Change.BaseSHA)
	}
}

// A proposal of a bundle leaves pack and checkout as they are, and goes by the job
// of the new base.
func TestBundleFollowsItsBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := unpublished(w.proposal("README.md", greeted))
	p.Table.Rows = []transcript.VerifyRow{{Name: "test", Before: "green", After: "green", Passed: true}}
	pack, err := w.Record.Read(record.PackFile)
	w.must(err)
	moved := w.onForge("main", "README.md", begun, "Begin earlier")
	p.Follow.Configure = func(_ context.Context, base gitops.Base) (*job.Job, error) {
		j := w.job()
		j.PullRequest.Title = "On " + base.SHA
		return j, nil
	}
	judged := ""
	p.Follow.Judge = func(_ context.Context, j *job.Job, change *gitops.ChangeSet) error {
		judged = j.PullRequest.Title
		return nil
	}
	w.publish(w.toForge(), p)
	pull := w.pull()
	if judged != "On "+moved || pull.Title != "On "+moved || !pull.Draft {
		t.Errorf("judged as %q: %+v", judged, pull)
	}
	for _, told := range []string{"verified on " + gitops.Short(p.Base.SHA) + ", not on " + gitops.Short(moved), "the change was merged onto it"} {
		if !strings.Contains(pull.Body, told) {
			t.Errorf("the body does not say %q:\n%s", told, pull.Body)
		}
	}
	after, err := w.Record.Read(record.PackFile)
	w.must(err)
	if !cmp.Equal(pack, after) || w.Record.Has(record.WorkPackFile) || w.git(w.dir, "status", "--porcelain") != "" {
		t.Error("the pack or the checkout was changed")
	}
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
			p.Job.OnVerifyFailed = "none"
			p.Table.Rows = []transcript.VerifyRow{{Name: "test", Passed: true, After: "green"}}
			moves := []string{w.onForge("main", "a.txt", "a\n", "Go on")}
			var ran []string
			p.Follow.Verify = func(_ context.Context, old transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error) {
				ran = append(ran, change.Base.SHA)
				moves = append(moves, w.onForge("main", "a.txt", fmt.Sprintln(len(ran)), "Go on")) // while they run
				return transcript.Verify{Attempt: old.Attempt + 1, Passed: test.passed, Rows: old.Rows}, test.err
			}
			var out Publication
			if err := Publish(t.Context(), w.toForge(), p, &out); !errors.Is(err, test.err) {
				t.Fatal(err)
			}
			if wanted := moves[:min(len(moves)-1, maxRebases)]; test.err == nil && !cmp.Equal(ran, wanted) || out.Table.Attempt != len(ran) {
				t.Errorf("checked on %q, the base was %q; attempt %d", ran, moves, out.Table.Attempt)
			}
			if (out.Commit != "") != test.passed || out.Base.SHA != ran[len(ran)-1] {
				t.Errorf("publication: %+v", out)
			}
		})
	}
}

func TestReportsChangeAlreadyInBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.publish(w.toForge(), w.proposal("README.md", greeted))
	w.git(w.dir, "checkout", "--quiet", "main")
	w.run("20260301T100000Z-00000002")
	p := w.proposal("README.md", greeted)
	w.onForge("main", "README.md", greeted, "The same")
	out := w.publish(w.toForge(), p)
	if !out.InBase || !out.Change.Empty() || out.OpenPullOfTask.Number != first.Pull.Number || w.pull().State != "open" {
		t.Errorf("publication: %+v", out)
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
			p.Follow.Judge = func(context.Context, *job.Job, *gitops.ChangeSet) error { return no }
		}},
		"no job is there": {moved: begun, change: func(p *Proposal) {
			p.Follow.Configure = func(context.Context, gitops.Base) (*job.Job, error) { return nil, no }
		}},
		"it may not be so": {moved: begun, change: func(p *Proposal) { p.Follow.Allow = func(gitops.Base, BaseBranch) error { return no } }},
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
				if err := Publish(t.Context(), w.toForge(), p, &out); !errors.Is(err, no) || out.Commit != "" {
					t.Errorf("got %v: %+v", err, out)
				}
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
		if err != nil || got != test.want || got.moved() != test.moved {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	_, err := LookUpBase(t.Context(), branches{err: &forge.Error{Kind: forge.Unavailable, Message: "it is down"}}, base)
	wantStop(t, err, "unavailable")
}

func TestCountsUnnamedConflicts(t *testing.T) {
	t.Parallel()
	conflict := &gitops.MergeError{}
	for i := range maxNamed + 3 {
		conflict.Conflicts = append(conflict.Conflicts, gitops.MergeConflict{Path: fmt.Sprintf("f%d", i), Why: "both changed it"})
	}
	if got := conflictsIn(conflict); !strings.HasSuffix(got, "f9 (both changed it) and 3 more") {
		t.Error(got)
	}
}

// A run goes on from the change of its pull request, on the base as it is.
func TestMergesEarlierChangeOntoBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(w.toForge(), w.proposal("README.md", greeted))
	w.git(w.dir, "checkout", "--quiet", "main")
	pull := &forge.PullRequest{Number: 1, Head: taskBranch, Base: "main"}
	earlier := func() (*MergedChange, error) {
		w.t.Helper()
		w.run("20260301T100000Z-00000002")
		to := w.toForge()
		return to.EarlierChange(t.Context(), to.Repo, pull, w.Workspace.Base(), func(_ context.Context, whole *gitops.ChangeSet) (*gitops.ChangeSet, error) { return whole, nil })
	}
	laid, err := earlier()
	if err != nil || len(laid.Change.Files) != 1 || laid.Change.Files[0].Path != "README.md" || laid.Moved || !laid.Clean() {
		t.Fatalf("on its own base: %+v, %v", laid, err)
	}
	w.onForge("main", "README.md", begun, "Begin earlier")
	w.git(w.dir, "pull", "--quiet", "forge", "main")
	if laid, err = earlier(); err != nil || laid.Change.Insertions != 1 || laid.Change.Deletions != 1 || !laid.Moved || !laid.Clean() || laid.DescribeUnmerged() != "" {
		t.Errorf("on a base that moved: %+v, %v", laid, err)
	}
	w.onForge("main", "README.md", "Bye.\n", "Leave")
	w.git(w.dir, "pull", "--quiet", "forge", "main")
	if laid, err = earlier(); err != nil || laid.Clean() || !laid.Conflicts[0].Marked {
		t.Fatalf("on a base that clashes: %+v, %v", laid, err)
	}
	text, _, err := w.Workspace.Checkout().Blob(laid.Change.Files[0].NewID)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	merged, err := io.ReadAll(text)
	for _, line := range laid.Labels.Markers() {
		if !strings.Contains(string(merged), line+"\n") || !strings.Contains(laid.DescribeUnmerged(), line) {
			t.Errorf("%v: it lacks %q:\n%s\n%s", err, line, merged, laid.DescribeUnmerged())
		}
	}
	for _, want := range []string{`"README.md": both changed the same lines`, "after \"<<<<<<< main (agent-ci)\" the lines of the new base", "leave no mark in it"} {
		if !strings.Contains(laid.DescribeUnmerged(), want) {
			t.Errorf("it lacks %q: %s", want, laid.DescribeUnmerged())
		}
	}
	w.onForge(taskBranch, "theirs.txt", "Theirs.\n", "By hand")
	_, err = earlier()
	wantStop(t, err, "foreign_commit")
	w.git(w.repo.Dir, "update-ref", "-d", "refs/heads/"+taskBranch)
	if laid, err = earlier(); laid != nil || err != nil {
		t.Errorf("of a branch that is gone: %+v, %v", laid, err)
	}
}

// What has no lines to merge is as on the new base, and the agent is told of both sides.
func TestDescribesUnmergedConflicts(t *testing.T) {
	t.Parallel()
	laid := &MergedChange{}
	for i := range maxTold + 2 {
		laid.Conflicts = append(laid.Conflicts, gitops.MergeConflict{Path: fmt.Sprintf("f\n%d", i), Why: "deleted here and changed on the new base"})
	}
	words := laid.DescribeUnmerged()
	for _, want := range []string{`- "f\n0": deleted here and changed on the new base ("here" is the earlier change); it is as on the new base`, "- and 2 more\n"} {
		if !strings.Contains(words, want) {
			t.Errorf("it lacks %q: %.600s", want, words)
		}
	}
	if strings.Contains(words, "Between the marks") {
		t.Error("it tells of marks where there are none")
	}
}
