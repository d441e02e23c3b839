package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
)

// script is a command of the job: a line or more for the shell.
type script struct {
	name    string
	run     string
	dir     string
	timeout time.Duration
	log     string // below the run directory
	place   place
}

// ran is how a script ended.
type ran struct {
	exitCode int
	timedOut bool
	seconds  float64
}

func (r ran) color() string {
	switch {
	case r.timedOut:
		return "timeout"
	case r.exitCode != 0:
		return "red"
	}
	return "green"
}

// runScript runs s to its end or its time limit. Its error is ctx's, or says
// that the command could not be run at all.
func (r *run) runScript(ctx context.Context, s script) (ran, error) {
	log, err := r.rec.Create(s.log)
	if err != nil {
		return ran{}, fmt.Errorf("make log of %s: %w", s.name, err)
	}
	defer log.Close()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	began := time.Now()
	out := record.NewLogWriter(log, r.rec.Redact)
	box, err := r.openSandbox(ctx, s.place)
	if err != nil {
		return ran{}, err
	}
	status, err := box.Run(limited, sandbox.Command{
		Argv: []string{"bash", "-e", "-c", s.run}, Dir: s.dir, Env: r.envAt(s.place.root), Output: out,
	})
	if left := box.Close(); left != nil {
		r.rec.Warn("processes_left", "After %s: %v.", s.name, left)
	}
	out.Flush()
	took := ran{exitCode: status.ExitCode, seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		return took, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		took.timedOut = true
		fmt.Fprintf(log, "\nagent-ci: timed out after %s\n", s.timeout)
		return took, nil
	case errors.Is(err, sandbox.ErrNotStarted):
		took.exitCode = 127
		fmt.Fprintf(log, "agent-ci: %v\n", err)
		return took, nil
	}
	return took, err
}

// commandEnv is the environment that commands see: an allow list, and what the
// job adds.
func (r *run) commandEnv() []string {
	return policy.Environment(r.options.Environ, r.job.Policy.Env.Pass, r.job.Policy.Env.Set)
}
