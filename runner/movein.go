package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/workspace"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

const markFile = record.StateFolder + "/checkout.json"

const keptUntracked = record.StateFolder + "/untracked"

const awayFile = record.StateFolder + "/away"

// What has the work that is not in the checkout.
const (
	inChange  = workspace.InChange
	inPatches = workspace.InPatches
)

// resumeCheckout opens the checkout. Where the work so far does not stand in it,
// moveIn puts it there.
func (r *run) resumeCheckout(ctx context.Context) error {
	dir := r.checkoutAgain()
	if err := r.ws().GitUnchangedSince(ctx, dir); err != nil {
		return err
	}
	if err := r.openCheckout(ctx, dir); err != nil {
		return checkoutFailure(err)
	}
	if err := r.checkout.Claim(); err != nil {
		return checkoutFailure(err)
	}
	if err := r.hideAgain(); err != nil {
		return err
	}
	for _, name := range leftovers(r.rec.Directory) {
		r.rec.Remove(name)
	}
	if !r.history.worked() {
		r.rec.Remove(keptUntracked)
		return r.sameBase(ctx)
	}
	here, err := r.findWork(ctx)
	if err != nil {
		return fmt.Errorf("go on with the checkout: %w", err)
	}
	if !here {
		return r.sameBase(ctx)
	}
	if err := r.useBase(); err != nil {
		return err
	}
	r.undone, r.wholePatch, err = r.undoPatch()
	return err
}

// checkoutAgain is the folder of the checkout that the run goes on in: the one
// that the user names, else where the run worked, else the one here.
func (r *run) checkoutAgain() string {
	w := r.history.Workspace
	switch {
	case r.options.Dir != "":
		return r.options.Dir
	case w.Cloned:
		r.cloned = true
		return r.rec.Join(record.CheckoutFolder)
	}
	if _, err := os.Stat(w.Root); errors.Is(err, fs.ErrNotExist) {
		return "."
	}
	return w.Root
}

// findWork says whether the work so far stands in the checkout. Otherwise the
// checkout is as its user has it, and r.away says what has the work.
func (r *run) findWork(ctx context.Context) (here bool, err error) {
	left, _ := r.rec.Read(awayFile)
	r.away = string(left)
	if r.history.Finished != nil && len(left) == 0 {
		r.away = inChange
	}
	raw, err := r.rec.Read(markFile)
	if err == nil {
		r.snapshot, err = r.checkout.Resume(ctx, raw)
	}
	switch {
	case errors.Is(err, gitops.ErrOtherCheckout), errors.Is(err, fs.ErrNotExist):
		if r.away == "" {
			r.away = inPatches
		}
		return false, nil
	case err != nil:
		return false, err
	case len(left) > 0:
		return false, r.takeOut(ctx)
	case r.history.Finished != nil && r.publishMode() != publishNone:
		return false, nil
	case r.history.Finished != nil && r.base.SHA != r.history.Workspace.BaseSHA:
		return false, cannotResume("its base commit is %s, the checkout stands on %s; check that commit out", gitops.Short(r.history.Workspace.BaseSHA), gitops.Short(r.base.SHA))
	}
	if r.history.Finished != nil {
		left, err := r.checkout.Changes(ctx, r.snapshot)
		if err != nil || left.Empty() { // its user has thrown the work away, and wants it again
			return false, err
		}
	}
	r.away = ""
	return true, nil
}

// takeOut takes out of the checkout what was put into it, or left, half.
func (r *run) takeOut(ctx context.Context) error {
	half, err := r.checkout.Changes(ctx, r.snapshot)
	if err != nil {
		return err
	}
	r.rec.Remove(journalFolder)
	return r.checkout.Restore(ctx, half)
}

// sameBase makes sure that the checkout is clean and on the run's base commit.
func (r *run) sameBase(ctx context.Context) error {
	w := r.history.Workspace
	if r.base.SHA != w.BaseSHA && w.Base != "" {
		if err := r.chooseBase(ctx, w.Base); err != nil {
			return checkoutFailure(err)
		}
	}
	if r.base.SHA != w.BaseSHA {
		return cannotResume("its base commit is %s, the checkout stands on %s; check that commit out", gitops.Short(w.BaseSHA), gitops.Short(r.base.SHA))
	}
	r.base.Branch = w.Base
	dirty, err := r.checkout.Dirty(ctx)
	if err != nil {
		return fmt.Errorf("look for uncommitted changes: %w", err)
	}
	if len(dirty) > 0 {
		return cannotResume("the checkout is not as the run left it, and has uncommitted changes (%s); give a clean one with --repo", some(dirty))
	}
	if r.away == inPatches && r.history.onPull() {
		return cannotResume("it goes on with a pull request, and this is not the checkout that it worked in; start a new one")
	}
	return r.findWorkDir()
}

// moveIn makes the checkout what it was when the run was stopped, as far as that
// can be done: the setup commands are run again, and the work is put in.
func (r *run) moveIn(ctx context.Context) error {
	if r.away == "" {
		return r.keepUntrackedAgain(ctx)
	}
	if err := r.setUp(ctx); err != nil {
		return err
	}
	if err := r.takeSnapshot(ctx); err != nil {
		return err
	}
	if err := r.keepUntracked(ctx); err != nil {
		return err
	}
	putIn := r.applyPatches
	if r.away == inChange {
		putIn = r.layOver
	}
	if err := putIn(ctx); err != nil {
		return err
	}
	r.rec.Remove(awayFile)
	r.movesIn = false
	return nil
}

// moveOut gives the checkout back into which the work was being put.
func (r *run) moveOut(ctx context.Context) string {
	var err error
	if r.snapshot != nil {
		err = r.takeOut(ctx)
	} else {
		err = r.checkout.Restore(ctx, nil)
	}
	if err != nil {
		r.rec.Warn("checkout_not_restored", "The checkout could not be put back (%v); a part of the work so far may stand in it.", err)
	}
	return "The work so far is kept; agent-ci resume " + r.rec.Path() + " tries again."
}

// keepUntrackedAgain keeps for verification what the end of a run removed.
func (r *run) keepUntrackedAgain(ctx context.Context) error {
	if r.rec.Has(keptUntracked) {
		return nil
	}
	return r.keepUntracked(ctx)
}

// layOver puts the last change set of the run into the checkout.
func (r *run) layOver(ctx context.Context) error {
	change := r.history.Work.Change
	if change == nil || len(change.Files) == 0 {
		return nil
	}
	name := workPack(r.rec.Directory)
	pack, err := r.rec.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer pack.Close()
	changes, err := r.checkout.ReadPack(ctx, pack, gitops.Tree(change.TreeSHA))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return r.checkout.LayOver(ctx, changes)
}

// applyPatches does the work so far again, as far as patches did it.
func (r *run) applyPatches(ctx context.Context) error {
	dir := r.workDir()
	root, err := os.OpenRoot(dir + "/") // which waits for no pipe
	if err != nil {
		return fmt.Errorf("open the working directory: %w", err)
	}
	defer root.Close()
	patcher := patch.New(patch.Options{Dir: dir, Root: root, Offer: tools.Freeform, View: r.boxes.View(), Protect: r.whyProtected})
	for n := 1; n <= r.patches; n++ {
		text, err := r.rec.Read(patchName(n))
		if err != nil {
			return fmt.Errorf("read %s: %w", patchName(n), err)
		}
		result, err := patcher.Apply(ctx, dir, string(text))
		if err != nil {
			return err
		}
		if result.Failed {
			r.rec.Warn("patch_not_repeated", "%s could not be applied again in this checkout: %s", patchName(n), strings.TrimSpace(result.Output))
		}
	}
	return nil
}

// dropState removes the working files of a run that has ended. One whose work
// stays in the checkout, to go on there, leaves the mark by which it is known, and
// what was hidden there; one whose work was not in it yet leaves what has the work.
func (r *run) dropState(o outcome.Outcome) {
	name := awayFile
	if !r.movesIn {
		name = markFile
	}
	left, err := r.rec.Read(name)
	r.rec.Remove(record.StateFolder)
	stays := r.stopped(o) && r.publishMode() == publishNone && !r.changes.Empty()
	if err != nil || !r.movesIn && !stays {
		return
	}
	if stays {
		err = r.keepHidden()
	}
	if err = errors.Join(err, r.rec.Write(name, left)); err != nil {
		r.rec.Remove(record.StateFolder)
	}
}

// leftovers are trees that a verification made which was broken off.
func leftovers(d *record.Directory) []string {
	names, _ := fs.Glob(d.Root().FS(), record.StateFolder+"/verify-*")
	return names
}

func patchName(n int) string { return fmt.Sprintf("%s/%03d.patch", record.PatchesFolder, n) }

// endLeftovers kills what the commands of the killed run left running: they
// have its folder of programs on their PATH.
func (r *run) endLeftovers(context.Context) error {
	mark := r.rec.Join(programsFolder)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // no such thing here; they died with the run or stay
	}
	for _, entry := range entries {
		pid, isProcess := processID(entry.Name())
		if !isProcess || pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // of another user, or gone
		}
		if ofRun(strings.Split(string(raw), "\x00"), mark) {
			endProcess(pid)
		}
	}
	return nil
}

func ofRun(env []string, folder string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		path, ok := strings.CutPrefix(variable, "PATH=")
		return ok && slices.Contains(filepath.SplitList(path), folder)
	})
}

// processID is the process that a name in /proc stands for.
func processID(name string) (int, bool) {
	pid, err := strconv.Atoi(name)
	return pid, err == nil && pid > 1
}

func endProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
