package sandboxcommand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Options say what a command is confined by.
type Options struct {
	Dir           string // the checkout, or a folder, where the command starts; empty is the current one
	Mode, Network string // of policy.sandbox and policy.network; empty leaves what is configured
	Environ       []string
	Reserved      []string // names of AGENT_CI_ variables that are flags, not job keys
	Bare          bool     // without the defaults of the base commit
}

// Surroundings are what a run in a folder would find and go by: the defaults of
// the base commit and the variables of the environment.
type Surroundings struct {
	Record     *record.Record
	Environ    settings.Environment
	Dir        string // without links
	Job        *job.Job
	Workspace  *workspace.Workspace // a plain folder where there is no checkout
	NoCheckout error                // why not; nil where Options.Bare left it out
	Sandboxes  *confine.Sandboxes
}

// LookAround reads what a run in the folder would go by. An error that is an
// outcome.Stop says what to do. The caller closes it.
func LookAround(ctx context.Context, o Options) (*Surroundings, error) {
	dir, err := realFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	env := settings.Environment(o.Environ)
	s := &Surroundings{Record: record.New(record.NewID(time.Now()), settings.Secrets(env, nil)), Environ: env, Dir: dir}
	if err := s.makeDirectory(); err != nil {
		return nil, err
	}
	s.Workspace = workspace.Folder(s.Record, dir)
	if err := s.read(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func realFolder(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", outcome.Stopf(outcome.InvalidInput, "no_such_path", "The folder %s cannot be used (%v); give another with --repo.", dir, outcome.RootCause(err)).Because(err)
	}
	return path, nil
}

// makeDirectory makes the folder of the working files.
func (s *Surroundings) makeDirectory() error {
	path, err := record.DefaultPath(s.Environ.Get, record.CommandFolders+s.Record.ID)
	if err != nil {
		return err
	}
	if err := workspace.OutsideCheckout(path, s.Dir); err != nil {
		return err
	}
	s.Record.Directory, err = record.NewDirectory(path)
	return err
}

// read finds the checkout, if there is one, and merges the job.
func (s *Surroundings) read(ctx context.Context, o Options) error {
	if err := s.Record.Lock(); err != nil {
		return err
	}
	if err := s.openCheckout(ctx); err != nil {
		return err
	}
	if o.Bare && s.Workspace.Checkout() != nil {
		s.NoCheckout = s.Workspace.Close()
		s.Workspace = workspace.Folder(s.Record, s.Dir)
	}
	// A job is not whole without a task, and this one is given to nobody.
	source := &settings.Source{Warn: s.Record.Warn, Given: settings.Given{Prompt: "Run a command.", Set: o.keys(), Env: s.Environ, Reserved: o.Reserved}}
	set, err := source.Load(ctx, s.Workspace.Commit())
	if err != nil {
		return err
	}
	s.Job = &set.Job
	s.Record.KeepOut(settings.Secrets(s.Environ, s.Job))
	s.Sandboxes = &confine.Sandboxes{Record: s.Record, Environ: s.Environ, Job: s.Job, Root: s.Workspace.Root(), Dir: s.Dir}
	if s.Workspace.Checkout() != nil {
		s.Sandboxes.LeaveOut = s.Workspace.LeaveOut
	}
	return s.Sandboxes.MakeFolders()
}

// openCheckout opens the checkout that the folder lies in, where one is that has a
// commit.
func (s *Surroundings) openCheckout(ctx context.Context) error {
	opened, err := workspace.Open(ctx, s.Record, workspace.Options{Dir: s.Dir, Path: s.Environ.Get("PATH")})
	if err == nil {
		s.Workspace = opened
		err = opened.StartOn(ctx, "")
	}
	switch s.NoCheckout = err; {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil, errors.Is(err, gitops.ErrNotRepository), errors.Is(err, gitops.ErrNoCommit):
		return nil
	}
	return workspace.CheckoutFailure(err)
}

func (o Options) keys() []string {
	var set []string
	for key, value := range map[string]string{"policy.sandbox": o.Mode, "policy.network": o.Network} {
		if value != "" {
			set = append(set, key+"="+value)
		}
	}
	return set
}

// Close removes the working files, and those that others left that were killed.
func (s *Surroundings) Close() error {
	_ = s.Workspace.Close()
	s.Record.Close()
	path := s.Record.Path()
	defer record.RemoveStale(filepath.Dir(path), time.Now())
	if err := sandbox.RemoveScratch(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the working files: %w", err)
	}
	return nil
}
