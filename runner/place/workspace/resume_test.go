package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// cut is a run that has been cut short after it changed README.
type cut struct {
	*record.Record
	repo    gittest.Repo
	earlier ResumedRun
	change  *transcript.Change
}

// cutShort lets a run work and go away, as one that is killed does.
func cutShort(t *testing.T) cut {
	t.Helper()
	repo := gittest.Seeded(t)
	repo.Write("mine", "untracked before")
	w, tree := working(t, repo.Dir)
	tree.Write("README", "worked\n")
	change(t, w)
	must.Do(t, w.Close())
	base := w.Base()
	return cut{w.rec, repo, ResumedRun{
		Workspace: transcript.Workspace{Base: base.Branch, BaseSHA: base.SHA, Path: ".", Root: repo.Dir}, AgentBegan: true, HasTree: true,
	}, must.Get(w.rec.View())(t).Change}
}

// elsewhere is a clone of the repository as it was before the run.
func (c cut) elsewhere(t *testing.T) string {
	t.Helper()
	return must.Get(cloneOf(c.repo.Dir, t.TempDir()))(t)
}

// goOn opens the checkout again; dir may be empty.
func (c cut) goOn(t *testing.T, dir string) (*Workspace, WorkPlace, error) {
	t.Helper()
	w, found, err := Resume(t.Context(), c.Record, Options{Dir: dir, Path: os.Getenv("PATH")}, c.earlier)
	if w != nil {
		t.Cleanup(func() { _ = w.Close() })
	}
	return w, found, err
}

func TestLocatesWorkOfResumedRun(t *testing.T) {
	away := func(what WorkPlace) func(*testing.T, *cut) string {
		return func(t *testing.T, c *cut) string { must.Do(t, c.Write(workPlaceFile, []byte(what))); return "" }
	}
	for name, test := range map[string]struct {
		then   func(*testing.T, *cut) (dir string)
		away   WorkPlace
		readme string
		reason string
	}{
		"killed":                   {func(*testing.T, *cut) string { return "" }, "", "worked\n", ""},
		"killed, named again":      {func(_ *testing.T, c *cut) string { return c.repo.Path("src") }, "", "worked\n", ""},
		"killed as it was put in":  {away(InChange), InChange, "one\ntwo\n", ""},
		"killed as patches were":   {away(InPatches), InPatches, "one\ntwo\n", ""},
		"killed, another checkout": {func(t *testing.T, c *cut) string { return c.elsewhere(t) }, InPatches, "one\ntwo\n", ""},
		"above another checkout":   {func(t *testing.T, c *cut) string { c.earlier.InOverlay = true; return c.elsewhere(t) }, "", "", "not_resumable"},
		"another machine":          {func(t *testing.T, c *cut) string { c.earlier.HasTree = false; return c.elsewhere(t) }, InPatches, "one\ntwo\n", ""},
		"without its tree":         {func(_ *testing.T, c *cut) string { c.earlier.HasTree = false; return "" }, InPatches, "one\ntwo\n", ""},
		"without its overlay":      {func(_ *testing.T, c *cut) string { c.earlier.HasTree, c.earlier.InOverlay = false, true; return "" }, InPatches, "one\ntwo\n", ""},
		"stopped":                  {func(_ *testing.T, c *cut) string { c.earlier.Stopped = true; return "" }, InChange, "one\ntwo\n", ""},
		"stopped, and others changed it": {func(_ *testing.T, c *cut) string {
			c.earlier.Stopped = true
			c.repo.Write("README", "mine\n")
			return ""
		}, "", "", "not_resumable"},
		"changed elsewhere": {func(t *testing.T, c *cut) string {
			dir := c.elsewhere(t)
			c.earlier.HasTree = false
			gittest.Repo{T: t, Dir: dir}.Write("README", "mine\n")
			return dir
		}, "", "", "not_resumable"},
		"a pull request elsewhere": {func(t *testing.T, c *cut) string {
			c.earlier.BeganWithPull, c.earlier.HasTree = true, false
			return c.elsewhere(t)
		}, "", "", "not_resumable"},
		"another base elsewhere": {func(t *testing.T, c *cut) string {
			dir := c.elsewhere(t)
			c.earlier.HasTree = false
			gittest.Repo{T: t, Dir: dir}.Commit("x")
			return dir
		}, "", "", "not_resumable"},
		"no checkout": {func(t *testing.T, _ *cut) string { return t.TempDir() }, "", "", "no_checkout"},
		"a missing folder": {func(t *testing.T, c *cut) string {
			c.earlier.Path, c.earlier.HasTree = "nowhere", false
			return c.elsewhere(t)
		}, "", "", "no_such_path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cutShort(t)
			dir := test.then(t, &c)
			w, found, err := c.goOn(t, dir)
			outcometest.Want(t, err, test.reason)
			if err != nil {
				if w != nil {
					t.Error("there is a workspace beside the error")
				}
				return
			}
			must.Same(t, test.away, found, "away in")
			inTree(t, w)
			must.Same(t, test.readme, string(must.Get(os.ReadFile(w.WorkDir("README")))(t)), "README")
			must.Same(t, c.earlier.BaseSHA, w.Base().SHA, "on", w.Base())
			must.Same(t, "main", w.Base().Branch, "on", w.Base())
		})
	}
}

func TestResumeRequiresOwnBase(t *testing.T) {
	c := cutShort(t)
	c.earlier.HasTree = false
	dir := c.elsewhere(t)
	there := gittest.Repo{T: t, Dir: dir}
	there.Git("checkout", "-q", "-b", "other")
	there.Commit("other")
	if w, found, err := c.goOn(t, dir); err != nil || w.Base().Branch != "main" || found != InPatches {
		t.Errorf("%+v, %v", found, err)
	}
	c.earlier.AgentBegan = false
	must.Do(t, os.MkdirAll(c.Join(untrackedFolder), 0o700))
	must.Do(t, os.MkdirAll(c.Join(record.StateFolder, "verify-3", "a"), 0o700))
	if _, found, err := c.goOn(t, c.elsewhere(t)); err != nil || found != "" {
		t.Errorf("%+v, %v", found, err)
	}
	if c.Has(untrackedFolder) || c.Has(record.StateFolder+"/verify-3") {
		t.Error("what the first attempt kept is still there")
	}
}

func TestResumeFindsCheckout(t *testing.T) {
	rec, root := recordtest.New(t, "20260101T000000Z-00000000"), t.TempDir()
	for name, test := range map[string]struct {
		was    transcript.Workspace
		dir    string
		want   string
		cloned bool
	}{
		"named":   {transcript.Workspace{Root: root, Cloned: true}, "named", "named", false},
		"its own": {transcript.Workspace{Root: root}, "", root, false},
		"cloned":  {transcript.Workspace{Root: root, Cloned: true}, "", rec.Join(record.CheckoutFolder), true},
		"gone":    {transcript.Workspace{Root: filepath.Join(root, "gone")}, "", ".", false},
	} {
		got := ResumedRun{Workspace: test.was}.withCheckoutFolder(rec, Options{Dir: test.dir, Path: "p"})
		if want := (Options{Dir: test.want, Path: "p", Cloned: test.cloned}); got.OpenFilter != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRestoresWorkInFreshCheckout(t *testing.T) {
	for name, test := range map[string]struct {
		away   WorkPlace
		readme string
	}{
		"its objects": {InChange, "worked\n"},
		"its patches": {InPatches, "patched\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cutShort(t)
			c.earlier.HasTree = false
			w, _, err := c.goOn(t, c.elsewhere(t))
			must.Do(t, err)
			inTree(t, w)
			must.Do(t, w.BeginMove(test.away))
			if !w.WorkPendingHere() || !WorkPending(c.Directory) {
				t.Error("it does not count as on its way")
			}
			must.Do(t, os.WriteFile(w.WorkDir("by-setup"), nil, 0o600))
			must.Do(t, w.MoveIn(t.Context(), WorkMove{From: test.away, Change: c.change, Untracked: true}, func(context.Context) error { return os.WriteFile(w.WorkDir("README"), []byte("patched\n"), 0o600) }))
			if got := string(must.Get(os.ReadFile(w.WorkDir("README")))(t)); got != test.readme || w.WorkPendingHere() || WorkPending(c.Directory) {
				t.Errorf("README is %q, on its way %v", got, w.WorkPendingHere())
			}
			if taken := must.Get(w.Changes(t.Context()))(t); len(taken.Files) != 1 || !w.rec.Has(untrackedFolder+"/by-setup") {
				t.Errorf("the change has %+v", taken.Files)
			}
		})
	}
}

func TestFailedRestoreStaysPending(t *testing.T) {
	c := cutShort(t)
	c.earlier.HasTree = false
	w, _, err := c.goOn(t, c.elsewhere(t))
	must.Do(t, err)
	inTree(t, w)
	must.Do(t, w.BeginMove(""))
	if w.WorkPendingHere() || WorkPending(c.Directory) {
		t.Error("work that is there counts as on its way")
	}
	must.Do(t, w.BeginMove(InPatches))
	if err := w.MoveIn(t.Context(), WorkMove{From: InPatches}, func(context.Context) error { return fs.ErrClosed }); !errors.Is(err, fs.ErrClosed) || !w.WorkPendingHere() || !WorkPending(c.Directory) {
		t.Errorf("%v, on its way %v", err, w.WorkPendingHere())
	}
	for name, change := range map[string]*transcript.Change{"no change": nil, "an empty change": {}} {
		must.Do(t, w.applyRecordedChange(t.Context(), change), name)
	}
	c.Remove(record.PackFile)
	must.Is(t, fs.ErrNotExist, w.MoveIn(t.Context(), WorkMove{From: InChange, Change: c.change}, nil))
	must.Do(t, c.Write(record.PackFile, []byte("PACK")))
	if _, err := w.ReadWork(t.Context(), c.Directory, c.change); !errors.As(err, new(*gitops.PackError)) {
		t.Errorf("got %v", err)
	}
}

func TestEndedRunKeepsStateForResume(t *testing.T) {
	for name, test := range map[string]struct {
		moving bool
		want   map[string]string
	}{
		"nothing":         {false, map[string]string{}},
		"work on its way": {true, map[string]string{"away": "work"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			w := opened(t, repo.Dir)
			must.Do(t, w.rec.Write(markFile, []byte("mark")))
			must.Do(t, w.rec.Write(workPlaceFile, []byte("work")))
			w.workPending = test.moving
			w.DropState()
			got := map[string]string{}
			if w.rec.Has(record.StateFolder) {
				got = gittest.Repo{T: t, Dir: w.rec.Join(record.StateFolder)}.Files()
			}
			must.Same(t, test.want, got)
		})
	}
	w := Folder(recordtest.New(t, "20260101T000000Z-00000000"), "/")
	must.Do(t, w.rec.Write(markFile, nil))
	must.Do(t, w.rec.Write(workInTreeFile+"/in-the-way", nil))
	w.workOnlyInTree = true
	must.Fail(t, "", w.RecordWorkInTree(), "a mark that cannot be made counts as made")
	if w.DropState(); !w.rec.Has(markFile) {
		t.Error("of a run whose work tree alone has its work something is removed")
	}
	w.workOnlyInTree = false
	if err := w.RecordWorkInTree(); err != nil || WorkOnlyInTree(w.rec.Directory) {
		t.Errorf("the mark of an earlier end is there still: %v", err)
	}
	w.rec.Remove(markFile)
	w.DropState() // there is no mark
	must.Same(t, false, w.rec.Has(record.StateFolder), "working files are left")
}
