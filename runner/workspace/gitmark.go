package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// gitMarkFile tells a run that goes on what git kept of the checkout before any
// command ran.
const gitMarkFile = record.StateFolder + "/git.json"

// gitChanged is the reason of the end of a run whose commands changed what git keeps.
const gitChanged = "git_changed"

// MarkGit notes what git keeps of the checkout, as far as commands in a sandbox of
// that level can write it. A run that goes on keeps to what was noted first.
func (w *Workspace) MarkGit(ctx context.Context, level sandbox.Level) error {
	if level == sandbox.LevelNone || w.overlay != nil {
		return nil
	}
	if err := w.readGitMark(); err != nil || w.gitMark != nil {
		return err
	}
	var submodules []string
	if w.checkout != nil {
		var err error
		if submodules, err = w.checkout.Submodules(ctx); err != nil {
			return err
		}
	}
	mark, err := guard.NewMark(ctx, w.root, level == sandbox.LevelLandlock, submodules)
	if err != nil || mark == nil {
		return err
	}
	w.gitMark = mark
	return w.rec.WriteJSON(gitMarkFile, mark)
}

func (w *Workspace) readGitMark() error {
	_, err := w.rec.ReadJSON(gitMarkFile, &w.gitMark)
	return err
}

// gitUnchangedSince is GitUnchanged for a run that goes on in dir, before anything
// reads that checkout. What was noted of another folder says nothing of this one.
func (w *Workspace) gitUnchangedSince(ctx context.Context, dir string) error {
	if err := w.readGitMark(); err != nil || w.gitMark == nil {
		return err
	}
	here, err := filepath.Abs(dir)
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err == nil && here == w.gitMark.Workspace {
		return w.GitUnchanged(ctx)
	}
	w.dropGitMark()
	return nil
}

// GitUnchanged ends the run when commands changed what git obeys or publishes
// by, or the objects that it reads.
func (w *Workspace) GitUnchanged(ctx context.Context) error {
	if w.gitMark == nil {
		return nil
	}
	changed, err := w.gitMark.Changed(ctx)
	if err != nil {
		return fmt.Errorf("compare git's folder with how it was before the commands: %w", err)
	}
	objects, err := w.gitMark.ChangedObjects(ctx)
	if err != nil {
		return fmt.Errorf("compare git's folder with how it was before the commands: %w", err)
	}
	w.unread = w.unread || len(objects) > 0
	changed = append(changed, objects...)
	if len(changed) == 0 {
		return nil
	}
	w.gitBad = true
	const shown = 10
	if more := len(changed) - shown; more > 0 {
		changed = append(changed[:shown], fmt.Sprintf("%d more", more))
	}
	return outcome.Stopf(outcome.PolicyViolation, gitChanged,
		"Commands of the run changed what git keeps of the checkout, which can only be found out afterwards: %s. "+
			"Nothing of git was run there; look at these files before you do, or throw the checkout away.", strings.Join(changed, "; "))
}

// ObjectFailure is the outcome of an object that is not what its id says; nil for any
// other error. Where commands ran that could write git's objects the object is their
// doing, else the repository is damaged. worked says that commands ran before this
// process did.
func (w *Workspace) ObjectFailure(err error, level sandbox.Level, worked bool) *outcome.Stop {
	var damaged *gitops.ObjectError
	if !errors.As(err, &damaged) {
		return nil
	}
	if !worked && !w.Worked() || level != sandbox.LevelLandlock && level != sandbox.LevelNone {
		return damagedRepository(damaged, err)
	}
	w.gitBad, w.unread = true, true
	return outcome.Stopf(outcome.PolicyViolation, gitChanged,
		"An object of git's is not what it was before commands ran that could write it: %s. Throw the checkout away, or look at it with git fsck.", damaged.What()).Because(err)
}

// endGitMark compares for the last time. No command of the run can write there any
// more, and what differs from now on is the run's own doing: a run that was killed
// after this and goes on must not take it for the doing of commands.
func (w *Workspace) endGitMark(ctx context.Context) error {
	if err := w.GitUnchanged(ctx); err != nil || w.gitMark == nil {
		return err
	}
	w.dropGitMark()
	return nil
}

func (w *Workspace) dropGitMark() {
	w.gitMark = nil
	w.rec.Remove(gitMarkFile)
}

// isViolation says whether an error is that commands changed what git keeps.
func isViolation(err error) bool {
	var stop *outcome.Stop
	return errors.As(err, &stop) && stop.Reason == gitChanged
}
