package confine

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Hide finds what is kept from commands in the checkout and in the folders of
// policy.writable. A run that goes on keeps to what was found first: what the
// agent made since says nothing.
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

// HideMore looks again after setup commands: what they made or fetched is hidden
// as what was there before. Where that can't be kept from commands, nothing more
// is run.
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

// findHidden looks for what is kept from commands, beside what was found before.
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

// nameSecrets says of files with the values of secrets that the job names them as such, and
// not as what is not to be read.
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
