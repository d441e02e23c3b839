package publish

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// The values of pull_request.commit.sign.
const (
	signGitHub = "github" // GitHub makes the commit and signs it
	signSSH    = "ssh"    // with the key in pull_request.commit.key_env
)

// maxKeyBytes is how many bytes of a file are read for a key.
const maxKeyBytes = 64 << 10

// ReadKey reads the signing key in advance, or returns nil.
func ReadKey(ctx context.Context, env settings.Environment, commit job.Commit) (*sshsig.Key, error) {
	if commit.Sign != signSSH {
		return nil, nil
	}
	key, err := readKey(ctx, env, commit.KeyEnv)
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "signing_key", "The commit cannot be signed: %s.", outcome.WithoutFullStop(err)).Because(err)
	}
	return key, nil
}

// readKey parses the private key in the variable called name, or in the file at that absolute path. Errors
// never contain the variable's value.
func readKey(ctx context.Context, env settings.Environment, name string) (*sshsig.Key, error) {
	value := env.Get(name)
	if name == "" || value == "" {
		return nil, errors.New("pull_request.commit.sign is ssh, and the variable that pull_request.commit.key_env names has no key")
	}
	if filepath.IsAbs(value) && !strings.Contains(value, "\n") {
		pem, err := boundedfile.Read(ctx, value, maxKeyBytes)
		if err != nil {
			return nil, fmt.Errorf("the file that %s names cannot be read", name)
		}
		value = string(pem)
	}
	key, err := sshsig.ParseKey([]byte(strings.TrimRight(value, "\n") + "\n"))
	if err != nil {
		return nil, fmt.Errorf("what %s holds: %w", name, err)
	}
	return key, nil
}
