package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// gitMarkFile is what git kept of the checkout before any command ran, for a
// run that goes on.
const gitMarkFile = record.StateFolder + "/git.json"

// markGit notes what git keeps of the checkout and the sandbox can't keep
// commands from writing. A run that goes on compares with what was noted
// first.
func (r *run) markGit(ctx context.Context) error {
	if r.confined.Level == string(sandbox.LevelNone) {
		return nil
	}
	if err := r.readGitMark(); err != nil || r.gitMark != nil {
		return err
	}
	var submodules []string
	if r.checkout != nil {
		var err error
		if submodules, err = r.checkout.Submodules(ctx); err != nil {
			return err
		}
	}
	mark, err := guard.NewMark(ctx, r.root(), r.confined.Level == string(sandbox.LevelLandlock), submodules)
	if err != nil || mark == nil {
		return err
	}
	r.gitMark = mark
	return r.rec.WriteJSON(gitMarkFile, mark)
}

func (r *run) readGitMark() error {
	raw, err := r.rec.Read(gitMarkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &r.gitMark)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", gitMarkFile, err)
	}
	return nil
}

// gitUnchangedSince is gitUnchanged for a run that goes on in dir, before
// anything reads the checkout. What was noted of another folder says nothing of
// this one.
func (r *run) gitUnchangedSince(ctx context.Context, dir string) error {
	if err := r.readGitMark(); err != nil || r.gitMark == nil {
		return err
	}
	here, err := filepath.Abs(dir)
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err == nil && here == r.gitMark.Workspace {
		return r.gitUnchanged(ctx)
	}
	r.gitMark = nil
	r.rec.Remove(gitMarkFile)
	return nil
}

// gitUnchanged ends the run when commands changed what git obeys or publishes
// by, or the objects that it reads.
func (r *run) gitUnchanged(ctx context.Context) error {
	if r.gitMark == nil {
		return nil
	}
	changed, err := r.gitMark.Changed(ctx)
	if err != nil {
		return fmt.Errorf("compare git's folder with how it was before the commands: %w", err)
	}
	objects, err := r.gitMark.ChangedObjects(ctx)
	if err != nil {
		return fmt.Errorf("compare git's folder with how it was before the commands: %w", err)
	}
	r.unread = r.unread || len(objects) > 0
	changed = append(changed, objects...)
	if len(changed) == 0 {
		return nil
	}
	r.gitBad = true
	const shown = 10
	if more := len(changed) - shown; more > 0 {
		changed = append(changed[:shown], fmt.Sprintf("%d more", more))
	}
	return outcome.Stopf(outcome.PolicyViolation, gitChanged,
		"Commands of the run changed what git keeps of the checkout, which can only be found out afterwards: %s. "+
			"Nothing of git was run there; look at these files before you do, or throw the checkout away.", strings.Join(changed, "; "))
}

// objectFailure is the outcome of an object that is not what its id says: the
// doing of commands, where some ran that can write git's objects, else a damaged
// repository.
func (r *run) objectFailure(err error) *outcome.Stop {
	var damaged *gitops.ObjectError
	if !errors.As(err, &damaged) {
		return nil
	}
	worked := r.snapshot != nil || r.history != nil && r.history.worked()
	if !worked || r.confined.Level != string(sandbox.LevelLandlock) && r.confined.Level != string(sandbox.LevelNone) {
		return damagedRepository(damaged, err)
	}
	r.gitBad, r.unread = true, true
	return outcome.Stopf(outcome.PolicyViolation, gitChanged,
		"An object of git's is not what it was before commands ran that could write it: %s. Throw the checkout away, or look at it with git fsck.", damaged.What()).Because(err)
}

func damagedRepository(damaged *gitops.ObjectError, err error) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "damaged_repository", "%s.", outcome.Sentence(damaged.Error())).Because(err)
}

// endGitMark compares for the last time. No command of the run can write there
// any more, and what differs from now on is the run's own doing: one that is
// killed after this must not take it for theirs.
func (r *run) endGitMark(ctx context.Context) error {
	if err := r.gitUnchanged(ctx); err != nil || r.gitMark == nil {
		return err
	}
	r.gitMark = nil
	r.rec.Remove(gitMarkFile)
	return nil
}

// gitChanged is the reason of such an end.
const gitChanged = "git_changed"

func isViolation(err error) bool {
	var stop *outcome.Stop
	return errors.As(err, &stop) && stop.Reason == gitChanged
}

// gitSpoiled says whether the checkout may not be touched by git any more, as where
// that cannot be told in time. What is found at the end of a run that ends for
// another reason is a warning.
func (r *run) gitSpoiled(ctx context.Context) bool {
	if r.gitBad || r.published.commit != "" {
		return r.gitBad
	}
	err := r.gitUnchanged(ctx)
	if isViolation(err) {
		var stop *outcome.Stop
		errors.As(err, &stop)
		r.rec.Warn(gitChanged, "%s", stop.Message)
	}
	return err != nil
}

// keepSpoiled keeps the work of a run whose commands changed git's folder, and
// leaves the checkout as it is.
func (r *run) keepSpoiled(ctx context.Context) string {
	if r.snapshot == nil {
		return ""
	}
	if r.unread && !r.kept {
		return "Git's objects can't be relied on, so the work was not made a patch; it stands in the checkout, which was left as it is."
	}
	if err := r.collect(ctx); err != nil && !isViolation(err) {
		r.rec.Warn("work_not_kept", "What the agent changed could not be kept (%v); it still stands in %s.", err, r.checkout.Root())
		return "The checkout was left as it is."
	}
	if r.changes.Empty() {
		return "The checkout was left as it is."
	}
	return fmt.Sprintf("The work is in %s; the checkout was left as it is.", r.rec.Join(record.PatchFile))
}
