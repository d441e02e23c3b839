package confine

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// hiddenFiles has the results of the search for files with secrets.
type hiddenFiles struct {
	hidden   *grants.Secrets // nil before the first search
	borrowed []string        // objects folders that the checkout borrowed at that time
}

// HideSecretFiles finds the files with secrets in the checkout and in policy.writable, and hides them from
// commands. A resumed run uses the earlier result, because the agent may have changed files since.
func (s *Sandboxes) HideSecretFiles(ctx context.Context) error {
	s.borrowed = guard.BorrowedObjectFolders(s.Root)
	switch {
	case s.isUnconfined():
		return nil // unconfined commands can read everything
	case s.Earlier.Hidden == nil:
		return s.findHidden(ctx)
	}
	return s.useHidden(s.Earlier.Hidden)
}

// HideFilesFromSetup searches for files with secrets again after setup. It returns an error that ends the
// run if they cannot be hidden.
func (s *Sandboxes) HideFilesFromSetup(ctx context.Context) error {
	if s.isUnconfined() {
		return nil
	}
	if err := s.findHidden(ctx); err != nil {
		return err
	}
	existed := slices.ContainsFunc(s.hidden.Found, func(secret grants.Secret) bool { return secret.Existed })
	if mayBeVisible := existed && s.level() == sandbox.LevelLandlock; !mayBeVisible { // Landlock cannot hide a file in every place
		return nil
	}
	_, _, err := s.probeConfinement(ctx, AgentPlace().egressCommands(), nil)
	return err
}

// isUnconfined reports whether policy.sandbox turns confinement off.
func (s *Sandboxes) isUnconfined() bool {
	return s.Job.Policy.Sandbox == string(grants.DangerFullAccess)
}

// findHidden searches for hidden files and adds those found before.
func (s *Sandboxes) findHidden(ctx context.Context) error {
	o := s.Options(AgentPlace()) // the search covers the folders that the agent's commands see
	found, err := grants.FindSecrets(ctx, o.Folders)
	if err != nil {
		return openFailure(o, err)
	}
	if s.hidden != nil {
		found.Add(s.hidden)
	}
	return s.useHidden(found)
}

// useHidden stores the hidden files, after the checkout has excluded them.
func (s *Sandboxes) useHidden(found *grants.Secrets) (err error) {
	s.labelSecretFiles(found)
	if s.Checkout != nil {
		found, err = s.Checkout.ExcludeSecrets(found)
	}
	if err == nil {
		s.hidden = found
	}
	return err
}

// labelSecretFiles labels the found files that are hidden because they hold the value of a secret of the
// job (policy.secrets), and not because of policy.deny_read.
func (s *Sandboxes) labelSecretFiles(found *grants.Secrets) {
	denied := s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead)
	for i, file := range found.Found {
		if file.By != grants.DeniedBy || slices.Contains(denied, file.Named) {
			continue
		}
		for _, secret := range s.Job.Policy.Secrets {
			if file.Named == s.Environ.SecretFile(secret) {
				found.Found[i].By = grants.SecretBy + secret.Name
			}
		}
	}
}
