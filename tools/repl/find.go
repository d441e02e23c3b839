package repl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

const (
	minNode  = 18 // the oldest major version with all features that the kernel uses
	findTime = 10 * time.Second
)

// Find runs node --version to check whether a kernel can run. The error says why it cannot.
func Find(ctx context.Context, o Options) error {
	if o.ruleRefusal() != "" {
		return errors.New("the rules on commands refuse node")
	}
	limited, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	output := clip.Head{Limit: 80}
	status, err := o.Sandbox.Run(limited, sandbox.Command{
		Argv: []string{"node", "--version"}, Dir: o.Dir, Env: o.Env, Output: &output,
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case status.ExitCode != 0:
		return fmt.Errorf("node --version ends with exit status %d", status.ExitCode)
	}
	version := strings.TrimSpace(output.String())
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < minNode {
		return fmt.Errorf("node is of version %q, and has to be of version %d or later", version, minNode)
	}
	return nil
}
