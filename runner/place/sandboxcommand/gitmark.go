package sandboxcommand

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// markGit records the state of the checkout's writable git files. agent-ci sandbox runs commands in
// the checkout itself, so they could change these files.
func (s *Session) markGit(ctx context.Context) (err error) {
	level, ws := s.box.Level(), s.prepared.Workspace
	if level == sandbox.LevelNone {
		return nil
	}
	var submodules []string
	if ws.Checkout() != nil {
		if submodules, err = ws.Checkout().Submodules(ctx); err != nil {
			return err
		}
	}
	gitIsWritable := level == sandbox.LevelLandlock
	s.gitMark, err = guard.NewMark(ctx, ws.Root(), gitIsWritable, submodules)
	return err
}

// requireUnchangedGit returns an outcome.Stop if commands changed git's configuration or objects.
func (s *Session) requireUnchangedGit(ctx context.Context) error {
	if s.gitMark == nil {
		return nil
	}
	changed, err := s.gitMark.ChangedFiles(ctx)
	objects, objectsErr := s.gitMark.ChangedObjects(ctx)
	if err := cmp.Or(err, objectsErr); err != nil {
		return fmt.Errorf("compare git's folder with how it was before the commands: %w", err)
	}
	changed = append(changed, objects...)
	if len(changed) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.PolicyViolation, "git_changed",
		"Commands changed files in the checkout's .git: %s. agent-ci can find this out only afterwards. "+
			"Look at these files before you run git there, or delete the checkout.", clip.Some(changed, 10))
}
