package tree_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

var errFault = errors.New("no space left")

// faults decides which changes to a tree fail.
type faults struct {
	seen    int
	fails   func(n int, operation string) bool
	noLinks bool
	copies  bool     // a second name leads to a copy, as in an overlay
	renamed []string // names that were renamed
}

// check calls fails before each change.
func (f *faults) check(operation string) error {
	f.seen++
	if f.fails != nil && f.fails(f.seen, operation) {
		return &fs.PathError{Op: operation, Err: errFault}
	}
	return nil
}

// faulty is a directory whose changes fail now and then.
type faulty struct {
	tree.Dir
	*faults
}

func (d faulty) Sub(name string) (tree.Dir, error) {
	sub, err := d.Dir.Sub(name)
	return faulty{sub, d.faults}, err
}

func (d faulty) Mkdir(name string) error {
	if err := d.check("mkdir"); err != nil {
		return err
	}
	return d.Dir.Mkdir(name)
}

func (d faulty) Create(name string, like fs.FileInfo) (io.WriteCloser, error) {
	if err := d.check("create"); err != nil {
		return nil, err
	}
	w, err := d.Dir.Create(name, like)
	return faultyFile{w, d.faults}, err
}

func (d faulty) Link(name, second string) error {
	if d.noLinks {
		return errors.ErrUnsupported
	}
	if err := d.check("link"); err != nil {
		return err
	}
	if d.copies {
		w, err := d.Dir.Create(second, nil)
		if err != nil {
			return err
		}
		return w.Close()
	}
	return d.Dir.Link(name, second)
}

func (d faulty) Rename(name, to string) error {
	d.renamed = append(d.renamed, name)
	if err := d.check("rename"); err != nil {
		return err
	}
	return d.Dir.Rename(name, to)
}

func (d faulty) Remove(name string) error {
	if err := d.check("remove"); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

type faultyFile struct {
	io.WriteCloser
	*faults
}

func (f faultyFile) Write(p []byte) (int, error) {
	if err := f.check("write"); err != nil {
		n, _ := f.WriteCloser.Write(p[:len(p)/2])
		return n, err
	}
	return f.WriteCloser.Write(p)
}

func (f faultyFile) Close() error {
	if err := f.check("close"); err != nil {
		_ = f.WriteCloser.Close()
		return err
	}
	return f.WriteCloser.Close()
}

var (
	fiveFiles = folder{"update": "a\n", "replace": "b\n", "d/delete": "c\n", "move": "d\n", "d/over": "e\n"}
	fivePatch = "*** Update File: update\n@@\n-a\n+A\n*** Add File: replace\n+B\n*** Delete File: d/delete\n" +
		"*** Update File: move\n*** Move to: d/over\n@@\n-d\n+D\n*** Add File: new/deep/add\n+F\n"
	fiveAfter = folder{"update": "A\n", "replace": "B\n", "d/over": "D\n", "new/deep/add": "F\n"}
)

// applyFaulty applies the five-file patch and returns the tree and how many
// changes were tried.
func applyFaulty(t *testing.T, f *faults) (after folder, err error) {
	t.Helper()
	dir := t.TempDir()
	fiveFiles.write(t, dir)
	err = plannedOn(t, faulty{tree.OnRoot(openRoot(t, dir)), f}, fivePatch).Commit(t.Context())
	return readTree(t, dir), err
}

// One step after the other fails, once or together with all writes after it,
// as on a full disk: the tree is as it was, or the patch is applied and the
// error names what lies about.
func TestCommitIsAtomicUnderFaults(t *testing.T) {
	kinds := map[string]func(at int) func(n int, operation string) bool{
		"one step": func(at int) func(int, string) bool {
			return func(n int, _ string) bool { return n == at }
		},
		"all that needs space": func(at int) func(int, string) bool {
			return func(n int, operation string) bool {
				return n >= at && operation != "remove" && operation != "rename"
			}
		},
	}
	for kind, failing := range kinds {
		for _, noLinks := range []bool{false, true} {
			name := kind
			if noLinks {
				name += ", no second names"
			}
			t.Run(name, func(t *testing.T) {
				refused := 0
				for at := 1; ; at++ {
					f := &faults{fails: failing(at), noLinks: noLinks}
					after, err := applyFaulty(t, f)
					if err == nil && f.seen < at {
						break
					}
					if checkFault(t, at, after, err) {
						refused++
					}
				}
				if refused < 12 {
					t.Errorf("only %d steps failed", refused)
				}
			})
		}
	}
}

// A program that is killed at any moment leaves the old file or the new one at its path, also where a file
// gets no second name.
func TestUpdateNeverRenamesFileAway(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a system that exchanges files")
	}
	dir := t.TempDir()
	fiveFiles.write(t, dir)
	f := &faults{copies: true}
	plan := plannedOn(t, faulty{tree.OnRoot(openRoot(t, dir)), f}, "*** Update File: update\n@@\n-a\n+A\n*** Update File: d/over\n@@\n-e\n+E\n")
	must.Do(t, plan.Commit(t.Context()))
	if slices.Contains(f.renamed, "update") || slices.Contains(f.renamed, "over") {
		t.Errorf("renamed away: %q", f.renamed)
	}
	wantTree(t, dir, folder{"update": "A\n", "replace": "b\n", "d/delete": "c\n", "move": "d\n", "d/over": "E\n"})
}

// checkLeftover reports whether the patch is applied and something is left over, and checks that the
// error names it.
func checkLeftover(t *testing.T, at int, after folder, err error) bool {
	t.Helper()
	left, ok := errors.AsType[*tree.LeftoverError](err)
	if !ok {
		return false
	}
	must.Same(t, fiveAfter, after.without(left.Paths).withoutEmpty(), "fault at", at, err)
	return true
}

// checkFault reports whether the patch was refused.
func checkFault(t *testing.T, at int, after folder, err error) bool {
	t.Helper()
	if checkLeftover(t, at, after, err) {
		return false
	}
	if err == nil {
		must.Same(t, fiveAfter, after.withoutEmpty(), "fault at", at, "survived")
		return false
	}
	failed, ok := errors.AsType[*tree.CommitError](err)
	if !ok || !errors.Is(err, errFault) || len(failed.Unrestored)+len(failed.Leftover) > 0 {
		t.Errorf("fault at %d: error = %v", at, err)
	}
	must.Same(t, fiveFiles, after, "fault at", at, err)
	return true
}

// A directory that turns read-only in the middle lets nothing be undone. Every
// old content is then still in its place or where the error says.
func TestPersistentFaultsLoseNoContent(t *testing.T) {
	for _, noLinks := range []bool{false, true} {
		for at := 1; ; at++ {
			f := &faults{fails: func(n int, _ string) bool { return n >= at }, noLinks: noLinks}
			after, err := applyFaulty(t, f)
			if f.seen < at {
				break
			}
			if checkLeftover(t, at, after, err) {
				continue
			}
			failed, ok := errors.AsType[*tree.CommitError](err)
			if !ok || !errors.Is(err, errFault) {
				t.Fatalf("fault at %d: error = %v", at, err)
			}
			checkAccounted(t, failed, after)
		}
	}
}

// checkAccounted checks that an error tells of everything that is not as it was.
func checkAccounted(t *testing.T, failed *tree.CommitError, after folder) {
	t.Helper()
	want := maps.Clone(fiveFiles)
	for _, where := range failed.Unrestored {
		name, rest, _ := strings.Cut(where, " (")
		if _, old, moved := strings.Cut(rest, "its old content is in "); moved {
			old, _, _ = strings.Cut(old, ":")
			want[old] = fiveFiles[name]
		}
		delete(want, name)
		delete(after, name)
	}
	var left []string
	for _, where := range failed.Leftover {
		name, _, _ := strings.Cut(where, " (")
		left = append(left, name)
		if _, had := fiveFiles[name]; had {
			t.Errorf("%q is called a leftover", name)
		}
	}
	must.Same(t, want, after.without(left).withoutEmpty(), failed)
}

func TestCommitEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	fiveFiles.write(t, dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	f := &faults{fails: func(n int, _ string) bool {
		if n == 12 {
			cancel(nil)
		}
		return false
	}}
	must.Is(t, context.Canceled, plannedOn(t, faulty{tree.OnRoot(openRoot(t, dir)), f}, fivePatch).Commit(ctx), "error")
	wantTree(t, dir, fiveFiles)
	must.Is(t, context.Canceled, must.Err(tree.NewPlan(ctx, tree.OnRoot(openRoot(t, dir)), parsed(t, fivePatch))), "plan")
}

// endsLater is a context that ends when it has been looked at so many times.
type endsLater struct {
	context.Context
	looks int
}

func (c *endsLater) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// A search through a large file ends with its context, wherever it is.
func TestPlanEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	folder{"f": strings.Repeat("line\n", 100_000)}.write(t, dir)
	for _, hunk := range []string{"@@\n line\n-lines\n", "@@ lin\n-line\n"} {
		patch := parsed(t, "*** Update File: f\n"+hunk)
		for looks := 0; ; looks = 2*looks + 1 {
			_, err := tree.NewPlan(&endsLater{t.Context(), looks}, tree.OnRoot(openRoot(t, dir)), patch)
			if _, ok := errors.AsType[*v4a.MatchError](err); ok {
				if looks < 3 {
					t.Errorf("looked only %d times whether to go on", looks)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("after %d looks: %v", looks, err)
			}
		}
	}
}

func (files folder) without(names []string) folder {
	kept := maps.Clone(files)
	for _, name := range names {
		delete(kept, name)
	}
	return kept
}
