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
	case s.EarlierHidden == nil:
		return s.findHidden(ctx)
	}
	return s.useHidden(s.EarlierHidden)
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
	there := slices.ContainsFunc(s.hidden.Found, func(secret grants.Secret) bool { return secret.Existed })
	if !there || s.level() != sandbox.LevelLandlock {
		return nil
	}
	_, _, err := s.probe(ctx, AgentPlace())
	return err
}

func (s *Sandboxes) unconfined() bool {
	return s.Job.Policy.Sandbox == string(grants.DangerFullAccess)
}

// findHidden finds further hidden files.
func (s *Sandboxes) findHidden(ctx context.Context) error {
	o := s.Options(AgentPlace()) // whose scratch folder is needed soon
	found, err := grants.FindSecrets(ctx, o.Folders)
	if err != nil {
		return openFailure(o, err)
	}
	if s.hidden != nil {
		found.Add(s.hidden)
	}
	return s.useHidden(found)
}

func (s *Sandboxes) useHidden(found *grants.Secrets) (err error) {
	s.labelSecretFiles(found)
	if s.ExcludeSecrets != nil {
		found, err = s.ExcludeSecrets(found)
	}
	if err == nil {
		s.hidden = found
	}
	return err
}

// labelSecretFiles labels files with values of the job's secrets.
func (s *Sandboxes) labelSecretFiles(found *grants.Secrets) {
	denied := s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead)
	for i, one := range found.Found {
		for _, secret := range s.Job.Policy.Secrets {
			if one.By == grants.DeniedBy && one.Named == s.Environ.SecretFile(secret) && !slices.Contains(denied, one.Named) {
				found.Found[i].By = grants.SecretBy + secret.Name
			}
		}
	}
}
