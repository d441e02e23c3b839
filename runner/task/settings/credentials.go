package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// The allowed length of a secret's value in bytes. A shorter value could not be removed from the
// run's output, and a longer one is no credential.
const (
	minSecretBytes = secrets.MinLength
	maxSecretBytes = 4096
)

// ReadCredentials reads the values of the job's secrets for the given kinds of commands, or for all
// kinds. It rejects values that commands would see anyway. The credentials have no placeholders
// yet. Error texts never contain a value.
func ReadCredentials(ctx context.Context, env Environment, j *job.Job, kinds ...string) (credential.Set, error) {
	if len(j.Policy.Secrets) == 0 {
		return nil, nil
	}
	var set credential.Set
	var problems []string
	commandEnvironment := policy.Environment(env, j.Policy.Env.Pass, j.Policy.Env.Set)
	for _, secret := range j.Policy.Secrets {
		if len(kinds) > 0 && !slices.ContainsFunc(kinds, secret.IsForCommands) {
			continue
		}
		c, err := readCredential(ctx, env, secret)
		if err == nil {
			err = checkNotVisible(c, commandEnvironment)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s (policy.secrets) %v", secret.Name, err))
		}
		set = append(set, c)
	}
	if len(problems) > 0 {
		return nil, outcome.Stopf(outcome.InvalidInput, "secret", "The secret %s.", strings.Join(problems, "; the secret "))
	}
	return set, nil
}

// readCredential returns a secret of the job with its value.
func readCredential(ctx context.Context, env Environment, s job.Secret) (c credential.Credential, err error) {
	c = credential.Credential{Name: s.Name, Header: s.Header, Parameter: s.Parameter, Private: s.Private, Methods: s.Methods, Fetch: s.Preset == job.PresetGit}
	for _, text := range s.Hosts {
		scope, err := credential.ParseScope(text)
		if err != nil {
			return c, fmt.Errorf("is for %q, which %w", text, err)
		}
		c.Scopes = append(c.Scopes, scope)
	}
	if s.FromFile() {
		c.Value, err = readSecretFile(ctx, env.SecretFile(s))
	} else if c.Value = env.Get(s.From); c.Value == "" {
		err = fmt.Errorf("has no value: the variable %s is not set; set it where agent-ci is started", s.From)
	}
	if err != nil {
		return c, err
	}
	return c, checkValue(c.Value)
}

// SecretFile returns the path of the file with the secret's value, or "" if a variable holds the
// value.
func (e Environment) SecretFile(s job.Secret) string {
	if !s.FromFile() {
		return ""
	}
	return e.Absolute("/", []string{s.From})[0]
}

// readSecretFile returns the one line in a secret's file, without its line end.
func readSecretFile(ctx context.Context, path string) (string, error) {
	raw, err := boundedfile.Read(ctx, path, maxSecretBytes+2)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("has no value: there is no file %s", path)
	case err != nil:
		return "", fmt.Errorf("has no value: the file %s can't be read: %w", path, outcome.WithoutPath(err))
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"), nil
}

// checkValue returns an error for an unusable value. The error text never contains the value.
func checkValue(value string) error {
	isForbidden := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	switch {
	case strings.ContainsAny(value, "\r\n"):
		return errors.New("has a value of several lines; a credential is one")
	case strings.ContainsFunc(value, isForbidden):
		return errors.New("has a value with a space, or with a character that is none of printable ASCII")
	case len(value) < minSecretBytes:
		return fmt.Errorf("has a value of fewer than %d characters, which could not be kept out of what the run writes", minSecretBytes)
	case len(value) > maxSecretBytes:
		return fmt.Errorf("has a value of more than %d characters", maxSecretBytes)
	}
	return nil
}

// checkNotVisible rejects a credential if commands can already see its value in their environment.
func checkNotVisible(c credential.Credential, environment []string) error {
	if name := variableWith(environment, c.Value); name != "" {
		return fmt.Errorf("has a value that commands would see in the variable %s; take it out of there", name)
	}
	return nil
}

// variableWith returns the name of the first variable in environment whose value contains text, or "".
func variableWith(environment []string, text string) string {
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); strings.Contains(value, text) {
			return name
		}
	}
	return ""
}

// CredentialSecrets returns the values of the credentials, for removal from all output.
func CredentialSecrets(set credential.Set) (values []secrets.Value) {
	for _, c := range set {
		values = append(values, secrets.Value{Name: c.Name, Secret: c.Value})
	}
	return values
}
