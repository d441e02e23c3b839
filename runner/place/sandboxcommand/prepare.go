package sandboxcommand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Options describes a command's place and confinement.
type Options struct {
	Dir           string // the checkout or folder where the command starts; empty for the current one
	Mode, Network string // override policy.sandbox and policy.network; empty keeps the configured value
	Environ       []string
	JobFile       string   // a job file with further configuration; empty for none
	JobContent    []byte   // that of JobFile, if it was read before
	Reserved      []string // AGENT_CI_ variables that are flags and no job keys

	builtIn bool // only built-in settings apply
}

// BuiltIn returns options with only the built-in settings.
func (o Options) BuiltIn() Options {
	environ := slices.DeleteFunc(slices.Clone(o.Environ), func(variable string) bool { return strings.HasPrefix(variable, "AGENT_CI_") })
	return Options{Dir: o.Dir, Environ: environ, builtIn: true}
}

// Prepared is the sandbox configuration of a folder, with working files. Close removes those files.
type Prepared struct {
	Dir        string // absolute, without links
	Environ    settings.Environment
	Record     *record.Record // without a transcript
	Job        *job.Job
	Workspace  *workspace.Workspace // of the checkout that contains Dir, or else of Dir alone
	NoCheckout error                // why there is no checkout; nil if there is one or it does not matter
}

// Prepare reads the configuration of a run in the folder: the base commit's defaults and the variables. An error
// with a remedy is an outcome.Stop. The caller closes the result.
func Prepare(ctx context.Context, o Options) (*Prepared, error) {
	dir, err := realFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	env := settings.Environment(o.Environ)
	p := &Prepared{Dir: dir, Environ: env, Record: record.New(record.NewID(time.Now()), settings.Secrets(env, nil))}
	p.Workspace = workspace.Folder(p.Record, dir)
	if err := p.makeDirectory(); err != nil {
		return nil, err
	}
	err = p.Record.Lock()
	if err == nil {
		err = p.openCheckout(ctx, o.builtIn)
	}
	if err == nil {
		err = p.loadJob(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// realFolder returns the absolute path of dir without links.
func realFolder(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", outcome.Stopf(outcome.InvalidInput, "no_such_path", "The folder %s cannot be used (%v); give another with --repo.", cmp.Or(dir, "."), outcome.WithoutPath(err)).Because(err)
	}
	return path, nil
}

// makeDirectory makes the directory of the working files, outside the checkout.
func (p *Prepared) makeDirectory() error {
	variable := "XDG_STATE_HOME"
	if p.Environ.Get("RUNNER_TEMP") != "" { // DefaultPath prefers it
		variable = "RUNNER_TEMP"
	}
	advice := "set " + variable + " to a folder outside of the checkout that can be written"
	path, err := record.DefaultPath(p.Environ.Get, record.CommandFolderPrefix+p.Record.ID, advice)
	if err == nil {
		err = workspace.RequireOutsideCheckout(path, p.Dir, advice)
	}
	if err == nil {
		p.Record.Directory, err = record.NewDirectory(path, advice)
	}
	return err
}

// openCheckout opens the folder's checkout. A missing one causes no error. An unreadable checkout
// is an error, because it may configure the sandbox.
func (p *Prepared) openCheckout(ctx context.Context, builtIn bool) error {
	opened, err := workspace.Open(ctx, p.Record, workspace.Options{Dir: p.Dir, Path: p.Environ.Get("PATH"), Forge: p.Environ.ForgeServer(), OpenFilter: confine.EarlyFilters(p.Record, p.Environ)})
	if opened != nil {
		p.Workspace, err = opened, opened.StartOn(ctx, "")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	isMissing := errors.Is(err, gitops.ErrNotRepository) || errors.Is(err, gitops.ErrNoCommit)
	hasNoGit := errors.As(err, new(*gitops.GitError))
	switch {
	case isMissing, hasNoGit && builtIn:
		p.NoCheckout = err
	case err != nil:
		return workspace.CheckoutFailure(err)
	case builtIn: // the checkout configures nothing
		p.Workspace, p.NoCheckout = workspace.Folder(p.Record, p.Dir), opened.Close()
	}
	return nil
}

// loadJob reads the job and makes the record redact its secrets.
func (p *Prepared) loadJob(ctx context.Context, o Options) error {
	inputs := settings.Inputs{JobFile: o.JobFile, JobContent: o.JobContent, Set: o.assignments(), Env: p.Environ, Reserved: o.Reserved}
	if o.JobFile == "" {
		inputs.Prompt = "Run a command." // every job needs a task; nobody reads this one
	}
	source := &settings.Source{Warn: p.Record.Warn, Inputs: inputs}
	read, err := source.Load(ctx, p.Workspace.Commit())
	if err != nil {
		return err
	}
	p.Job = &read.Job
	p.Record.SetSecrets(settings.Secrets(p.Environ, p.Job))
	return nil
}

// assignments returns the settings that the caller chose, as KEY=VALUE of a job, in any order.
func (o Options) assignments() (all []string) {
	for key, value := range map[string]string{"policy.sandbox": o.Mode, "policy.network": o.Network} {
		if value != "" {
			all = append(all, key+"="+value)
		}
	}
	return all
}

// Sandboxes returns the sandboxes for a set of rules.
func (p *Prepared) Sandboxes(by *rules.Set) (*confine.Sandboxes, error) {
	boxes := &confine.Sandboxes{Control: egress.Control{Record: p.Record, Environ: p.Environ, Job: p.Job, Rules: by}, Root: p.Workspace.Root(), Dir: p.Dir}
	if p.Workspace.Checkout() != nil {
		boxes.Checkout = p.Workspace
	}
	return boxes, boxes.MakeFolders()
}

// Credentials returns the configured secrets of the given kinds of commands, or all secrets without
// kinds. The record then redacts their values.
func (p *Prepared) Credentials(ctx context.Context, kinds ...string) (credential.Set, error) {
	all, err := settings.ReadCredentials(ctx, p.Environ, p.Job, kinds...)
	if err == nil {
		p.Record.SetSecrets(append(settings.Secrets(p.Environ, p.Job), settings.CredentialSecrets(all)...))
	}
	return all, err
}

// Authorities returns the configured certificates for hosts.
func (p *Prepared) Authorities(ctx context.Context) (settings.Authorities, error) {
	return settings.ReadAuthorities(ctx, p.Workspace.Commit(), p.Job)
}

// Close removes the working files, and old ones of killed commands.
func (p *Prepared) Close() error {
	_ = p.Workspace.Close() // an error does not matter: nothing in the workspace is kept
	p.Record.Close()
	path := p.Record.Path()
	defer record.RemoveStale(filepath.Dir(path), time.Now())
	if err := sandbox.RemoveScratch(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the working files: %w", err)
	}
	return nil
}
