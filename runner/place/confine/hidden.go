package confine

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Hide finds the hidden files in the checkout and policy.writable. A resumed run keeps the first
// result, because the agent may have changed files since.
func (s *Sandboxes) Hide(ctx context.Context) error {
	s.borrowed = guard.Borrowed(s.Root)
	switch {
	case s.unconfined():
		return nil // nothing is kept from commands
	case s.Known == nil:
		return s.findHidden(ctx)
	}
	return s.useHidden(s.Known)
}

// HideMore searches again after setup, whose files are hidden alike. If they cannot be hidden, it
// ends the run.
func (s *Sandboxes) HideMore(ctx context.Context) error {
	if s.unconfined() {
		return nil
	}
	if err := s.findHidden(ctx); err != nil {
		return err
	}
	there := slices.ContainsFunc(s.hidden.Found, func(secret grants.Secret) bool { return secret.There })
	if !there || s.level() != sandbox.LevelLandlock {
		return nil
	}
	_, _, err := s.probe(ctx, Agent())
	return err
}

func (s *Sandboxes) unconfined() bool {
	return s.Job.Policy.Sandbox == string(grants.DangerFullAccess)
}

// findHidden finds further hidden files.
func (s *Sandboxes) findHidden(ctx context.Context) error {
	o := s.Options(Agent()) // whose scratch folder is needed soon
	found, err := grants.FindSecrets(ctx, o.Folders)
	if err != nil {
		return failure(o, err)
	}
	if s.hidden != nil {
		found.Join(s.hidden)
	}
	return s.useHidden(found)
}

func (s *Sandboxes) useHidden(found *grants.Secrets) (err error) {
	s.nameSecrets(found)
	if s.LeaveOut != nil {
		found, err = s.LeaveOut(found)
	}
	if err == nil {
		s.hidden = found
	}
	return err
}

// nameSecrets labels files with values of the job's secrets.
func (s *Sandboxes) nameSecrets(found *grants.Secrets) {
	denied := s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead)
	for i, one := range found.Found {
		for _, secret := range s.Job.Policy.Secrets {
			if one.By == grants.DeniedBy && one.Named == s.Environ.SecretFile(secret) && !slices.Contains(denied, one.Named) {
				found.Found[i].By = grants.SecretBy + secret.Name
			}
		}
	}
}
