package workspace

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
)

// keptWork ends a run that began on the branch other while main was checked out,
// after an agent did something.
func keptWork(t *testing.T, do func(gittest.Repo), e RunEnd) (w *Workspace, repo gittest.Repo, note string) {
	t.Helper()
	repo = gittest.Seeded(t)
	repo.Git("branch", "other")
	repo.Write("README", "main\n")
	repo.Commit("main")
	w = opened(t, repo.Dir)
	must.Do(t, w.SetBase(t.Context(), gitops.BaseSpec{Branch: "other"}))
	tree := inTree(t, w)
	if do != nil {
		must.Do(t, w.TakeSnapshot(t.Context()))
		do(tree)
	}
	if e.Run == nil {
		e.Run = ends{w: w}
	}
	return w, repo, w.KeepWork(t.Context(), e)
}

// ends is a run that ends. Without w its work cannot be saved.
type ends struct {
	w       *Workspace
	resumes bool
}

func (e ends) ResumesTree() bool { return e.resumes }
func (e ends) TakeUnsaved(ctx context.Context) (*gitops.ChangeSet, error) {
	if e.w == nil {
		return nil, os.ErrClosed
	}
	return e.w.TakeChange(ctx, everything)
}

func work(r gittest.Repo) { r.Write("gone", "worked\n") }

func TestKeepsCheckoutAndSavesWork(t *testing.T) {
	for name, test := range map[string]struct {
		do       func(gittest.Repo)
		ending   RunEnd
		note     string
		readme   string // of main, or as other has it
		gone     string
		warnings []string
	}{
		"before the agent": {nil, RunEnd{}, "", "main\n", "to be deleted\n", nil},
		"no work":          {all(), RunEnd{}, "", "main\n", "to be deleted\n", nil},
		"no work, to stay": {all(), RunEnd{ForCheckout: true}, "", "main\n", "to be deleted\n", nil},
		"work":             {work, RunEnd{}, "The work is in PATCH; the checkout is as it was.", "main\n", "to be deleted\n", nil},
		"work, committed":  {all(work, git("checkout", "-q", "-b", "by-agent"), git("commit", "-qam", "x")), RunEnd{}, "The work is in PATCH; the checkout is as it was.", "main\n", "to be deleted\n", nil},
		"work beside what no change can have": {
			all(work, func(r gittest.Repo) { r.Git("init", "-q", "nested"); r.Write("nested/x", "x") }),
			RunEnd{},
			"The work is in PATCH; the checkout is as it was. Files that cannot be part of a change (nested) are in LEFT.", "main\n", "to be deleted\n", nil,
		},
		"work that stays":     {work, RunEnd{ForCheckout: true}, "The work so far is in the checkout, uncommitted. The checkout stands on other, where it was on main.", "one\ntwo\n", "worked\n", nil},
		"a change that stays": {work, RunEnd{ForCheckout: true, Changed: true}, "The checkout stands on other, where it was on main.", "one\ntwo\n", "worked\n", nil},
		"work that goes on":   {work, RunEnd{ForCheckout: true, Resumable: true}, "The work is in PATCH; the checkout is as it was.", "main\n", "to be deleted\n", nil},
		"published":           {work, RunEnd{Published: true}, "", "main\n", "to be deleted\n", nil},
		"work that is lost":   {work, RunEnd{Run: ends{}}, "The checkout is as it was; what the agent changed lies in TREE.", "main\n", "to be deleted\n", []string{"work_not_kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, repo, note := keptWork(t, test.do, test.ending)
			must.Same(t, strings.NewReplacer("PATCH", w.rec.Join(record.PatchFile), "LEFT", w.rec.Join(record.LeftoverFolder), "TREE", w.tree.ChangesFolder()).Replace(test.note), note, "it tells")
			got := []string{repo.Read("README"), repo.Read("gone")}
			must.Same(t, []string{test.readme, test.gone}, got)
			wantWarnings(t, w, test.warnings...)
		})
	}
	must.Same(t, "", Folder(recordtest.New(t, "20260101T000000Z-00000000"), "/").KeepWork(t.Context(), RunEnd{}), "of a plain folder it tells")
}

// A warning offers agent-ci resume only for a run that can resume.
func TestOffersResumeOfWorkInTree(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		w, tree := working(t, gittest.Seeded(t).Dir)
		work(tree)
		w.KeepWork(t.Context(), RunEnd{Run: ends{resumes: resumes}})
		warned := w.rec.Warnings()[0].Message
		must.Same(t, resumes, strings.Contains(warned, "agent-ci resume "+w.rec.Path()), warned)
	}
}

// The note does not mention a removed checkout.
func TestSavesWorkWithoutCheckout(t *testing.T) {
	for name, test := range map[string]struct {
		isSaved bool
		note    string
	}{
		"saved before": {true, "The work is in PATCH."},
		"unsaved":      {false, "What the agent changed lies in TREE."},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.Seeded(t)
			w, tree := working(t, repo.Dir)
			work(tree)
			end := RunEnd{Run: ends{w: w}}
			if test.isSaved {
				end = RunEnd{Change: change(t, w), Run: ends{}} // which is not taken again
			}
			must.Do(t, os.Rename(repo.Dir, repo.Dir+"-moved"))
			note := w.KeepWork(t.Context(), end)
			must.Same(t, strings.NewReplacer("PATCH", w.rec.Join(record.PatchFile), "TREE", w.tree.ChangesFolder()).Replace(test.note), note, "it tells")
		})
	}
}

func TestInterruptedMoveStaysPending(t *testing.T) {
	for name, worked := range map[string]bool{"in setup": false, "half put in": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			w := opened(t, repo.Dir)
			must.Do(t, w.BeginMove(InChange))
			tree := inTree(t, w)
			if worked {
				must.Do(t, w.TakeSnapshot(t.Context()))
				work(tree)
			}
			must.Contain(t, w.KeepWork(t.Context(), RunEnd{}), "agent-ci resume "+w.rec.Path())
			if repo.Read("gone") != "to be deleted\n" || !WorkPending(w.rec.Directory) {
				t.Errorf("gone is %q", repo.Read("gone"))
			}
			wantWarnings(t, w)
		})
	}
}

func TestSwitchesCheckoutToCommit(t *testing.T) {
	repo := gittest.Seeded(t)
	w, tree := working(t, repo.Dir)
	work(tree)
	taken := change(t, w)
	commit := must.Get(w.checkout.WriteCommit(t.Context(), taken, gitops.CommitOptions{Message: "work"}))(t)
	repo.Git("branch", "theirs", repo.Git("commit-tree", "-m", "theirs", "HEAD^{tree}"))
	outcometest.Want(t, must.Err(w.Switch(t.Context(), "theirs", commit, taken)), "foreign_commit")
	must.Same(t, "", must.Get(w.Switch(t.Context(), "agent-ci/x", commit, taken))(t), "the checkout was not switched")
	must.Same(t, "## agent-ci/x", repo.Git("status", "--porcelain", "--branch"), "the checkout is at")
	must.Fail(t, "agent-ci/x/y", must.Err(w.Switch(t.Context(), "agent-ci/x/y", commit, taken)))
}
