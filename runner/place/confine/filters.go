package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// EarlyFilters opens sandboxes for git filters before the job is known, when the checkout moves to
// its base.
func EarlyFilters(rec *record.Record, environ settings.Environment) gitops.OpenFilter {
	j := &job.Job{Policy: job.Policy{Sandbox: string(grants.WorkspaceWrite)}}
	var opened atomic.Int64
	return func(ctx context.Context, f gitops.Filter) (gitops.FilterSandbox, error) {
		s := &Sandboxes{Control: egress.Control{Record: rec, Environ: environ, Job: j}, Root: f.Root}
		return s.openFilter(ctx, f, fmt.Sprintf("early-filter-%d", opened.Add(1)))
	}
}

// OpenFilter opens a sandbox for a filter's commands. They start in an empty folder. They have no
// token and no network, and see only the checkout's files that the job lists.
func (s *Sandboxes) OpenFilter(ctx context.Context, f gitops.Filter) (gitops.FilterSandbox, error) {
	return s.openFilter(ctx, f, fmt.Sprintf("filter-%d", s.sidecars.filters.Add(1)))
}

// openFilter opens the sandbox of a filter. name is unique among the sandboxes.
func (s *Sandboxes) openFilter(ctx context.Context, f gitops.Filter, name string) (gitops.FilterSandbox, error) {
	if s.isUnconfined() {
		return nil, &gitops.FilterError{
			Key: "filter." + f.Name, Why: "policy.sandbox is danger-full-access, and filters run confined",
			Remedy: "choose another mode, or take the filter out of git's configuration",
		}
	}
	reads := s.Environ.Absolute(s.Root, f.Reads)
	for _, path := range reads {
		if s.leadsThroughLink(path) {
			return nil, &gitops.FilterError{
				Key: "filter." + f.Name, Why: fmt.Sprintf("%s, which it may read, is a link or below one", path),
				Remedy: "name in git.filters what it leads to",
			}
		}
	}
	box, err := s.OpenSidecar(ctx, nil, Sidecar{Name: name, Workspace: SidecarNone, WithoutSetupFiles: true, ReadablePaths: reads})
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, path := range reads {
		if filepath.Base(path) == ".git" { // filters such as git-crypt ask git for its folder
			set["GIT_DIR"] = path
		}
	}
	return &filterSandbox{box: box, dir: s.Record.Join(emptyFolder), env: s.SidecarEnv(nil, set), remove: func() error { return s.Remove(Place{Scratch: name}) }}, nil
}

// leadsThroughLink reports whether a path of the checkout leads through a link. The agent could make such a
// link to show the filter a credential.
func (s *Sandboxes) leadsThroughLink(path string) bool {
	rel, is := pathname.Below(s.Root, path)
	if !is {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real != filepath.Join(withoutLinks(s.Root), rel) // a missing path is not shown, so it is no danger
}

// filterSandbox is a filter's sandbox, with an empty folder.
type filterSandbox struct {
	box    *sandbox.Sandbox
	dir    string
	env    []string
	remove func() error
}

func (p *filterSandbox) Close() error { return errors.Join(p.box.Close(), p.remove()) }

// maxStderrBytes is how many bytes at the end of a filter's standard error are kept.
const maxStderrBytes = 1 << 10

// Run runs a command with content as standard input, and writes its standard output to result.
func (p *filterSandbox) Run(ctx context.Context, command string, content io.Reader, result io.Writer) error {
	words := clip.Tail{Limit: maxStderrBytes}
	status, err := attached.Run(ctx, p.box.Start, sandbox.Command{Argv: []string{"/bin/sh", "-c", command}, Dir: p.dir, Env: p.env}, attached.Streams{
		Input: content, Output: attached.To(result), Errors: attached.To(&words),
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case status.ExitCode != 0:
		return &gitops.CommandError{Status: status.ExitCode, Words: words.String()}
	}
	return nil
}
