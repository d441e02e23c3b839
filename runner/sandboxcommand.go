package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// AloneOptions say what a command that is no run's is confined by.
type AloneOptions struct {
	Dir           string // the checkout, or a folder, where the command starts; empty is the current one
	Mode, Network string // of policy.sandbox and policy.network; empty leaves what is configured
	Environ       []string
	Reserved      []string // names of AGENT_CI_ variables that are flags, not job keys
	Version       string

	bare bool // without the defaults of the base commit
}

// Alone is a sandbox for commands that a person gives, made and judged as that
// of a run's agent: by the defaults of the base commit and the variables of the
// environment.
type Alone struct {
	run *run
	box *sandbox.Sandbox
	dir string
}

// OpenAlone opens it. An error that is an outcome.Stop says what to do. The
// caller closes it.
func OpenAlone(ctx context.Context, o AloneOptions) (*Alone, error) {
	begun := o.begin()
	defer begun.End() // unless it is taken
	a, err := prepareAlone(ctx, o)
	if err != nil {
		return nil, err
	}
	r := a.run
	if err := r.readCommandRules(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	boxes := r.newBoxes() // which go by the rules
	r.linkPatchTool()
	if err := boxes.Hide(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.box, err = boxes.Open(ctx, confine.Place{Scratch: confine.AgentScratch, Begun: begun})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	r.confined = boxes.Reached()
	if err := r.markGit(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// begin starts the process inside before it is known what it is to be told, for
// the network that it will most likely be.
func (o AloneOptions) begin() *sandbox.Begun {
	if o.Mode == string(grants.DangerFullAccess) {
		return nil
	}
	return sandbox.Begin(sandbox.Network(cmp.Or(o.Network, string(sandbox.NetworkLoopback))))
}

// prepareAlone reads what a run in this folder would be configured by.
func prepareAlone(ctx context.Context, o AloneOptions) (*Alone, error) {
	dir, err := realFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	// A job is not whole without a task, and this one is given to nobody.
	r := newRun(Options{Dir: dir, Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Prompt: "Run a command.", Set: o.keys()}, record.NewID(began), began)
	path, err := record.DefaultPath(r.env.Get, record.CommandFolders+r.rec.ID)
	if err != nil {
		return nil, err
	}
	if err := outsideCheckout(path, dir); err != nil {
		return nil, err
	}
	if r.rec.Directory, err = record.NewDirectory(path); err != nil {
		return nil, err
	}
	a := &Alone{run: r, dir: dir}
	if err := r.rec.Lock(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := r.readAlone(ctx, o.bare); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
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

func (o AloneOptions) keys() []string {
	var set []string
	for key, value := range map[string]string{"policy.sandbox": o.Mode, "policy.network": o.Network} {
		if value != "" {
			set = append(set, key+"="+value)
		}
	}
	return set
}

// readAlone finds the checkout, if there is one, and merges the job.
func (r *run) readAlone(ctx context.Context, bare bool) error {
	if err := r.findCheckout(ctx); err != nil {
		return err
	}
	if r.openErr != nil && !errors.Is(r.openErr, gitops.ErrNotRepository) && !errors.Is(r.openErr, gitops.ErrNoCommit) {
		return checkoutFailure(r.openErr)
	}
	if bare && r.checkout != nil {
		r.openErr = r.checkout.Close()
		r.checkout = nil
	}
	if err := r.loadJob(ctx); err != nil {
		return err
	}
	return r.newBoxes().MakeFolders()
}

// Warnings are what to know of the configuration and of the confinement.
func (a *Alone) Warnings() []string {
	var all []string
	for _, w := range a.run.rec.Warnings() {
		all = append(all, w.Message)
	}
	switch level := a.box.Level(); level {
	case sandbox.LevelFull:
	case sandbox.LevelNone:
		all = append(all, confine.UnconfinedWords)
	default:
		all = append(all, fmt.Sprintf("Commands are confined at the level %s, which is not all that there can be; agent-ci doctor says what is missing.", level))
	}
	return all
}

// Start starts a command: with streams, or with a terminal of that size whose
// output goes to Output. The rules may refuse it; the error then is an
// outcome.Stop like all that a person can do something about.
func (a *Alone) Start(c sandbox.Command) (*sandbox.Process, error) {
	r := a.run
	if d := r.boxes.Commands().Decide(policy.Request{Argv: c.Argv, Dir: a.dir}); d.Action == policy.Refuse {
		return nil, outcome.Stopf(outcome.PolicyViolation, "command", "%s", d.Words())
	}
	c.Dir, c.Env = a.dir, r.boxes.AgentEnv()
	return a.box.Start(c)
}

// Close ends all that was started and removes what it left outside the
// checkout. The error may be what commands did to git.
func (a *Alone) Close() error {
	if a.box == nil {
		return a.remove()
	}
	if !a.box.Empty() {
		return errors.Join(a.box.Close(), a.run.gitUnchanged(context.Background()), a.remove())
	}
	closed := make(chan error, 1)
	go func() { closed <- a.box.Close() }()
	err := errors.Join(a.run.gitUnchanged(context.Background()), a.remove())
	return errors.Join(<-closed, err)
}

// remove lets go of the working files, and of those that others left that were
// killed.
func (a *Alone) remove() error {
	a.run.close()
	path := a.run.rec.Path()
	defer record.RemoveStale(filepath.Dir(path), time.Now())
	return removeDirectory(path)
}

func removeDirectory(path string) error {
	if err := sandbox.RemoveScratch(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the working files: %w", err)
	}
	return nil
}
