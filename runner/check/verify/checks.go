package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Checks runs a job's setup and verify commands.
type Checks struct {
	Record        *record.Record
	Sandboxes     *confine.Sandboxes
	Workspace     *workspace.Workspace
	Job           *job.Job
	ProofDeadline time.Time      // zero for none
	BaselineCache *BaselineCache // nil: no baseline is cached
	Branch        string         // the branch that the change goes to
	// Commit returns the commit that publishing would make of the change, on a base and at a time.
	Commit func(base gitops.Base, when time.Time) (gitops.CommitOptions, error)

	onOtherBase bool // the checks run on another base than the baseline's
}

// suite is one run of the job's checks on one tree.
type suite struct {
	attempt     int    // attempt of verification; 0 is the baseline
	kind        string // prefix of the names of its places and logs
	base        gitops.Base
	tree        gitops.Tree
	changeTree  gitops.Tree                          // the judged change's tree; differs from tree only in proofs
	commit      func() (gitops.CommitOptions, error) // returns the commit that HEAD shows, the same for all checks
	why         string                               // why it runs besides baseline and change, for people; then a service that does not get ready is not the change's fault
	keepsCaches bool                                 // the checks' caches are kept
	isProof     bool                                 // it runs the base with tests of the change
}

// newSuite returns the suite that runs the checks on a tree, with fresh caches and an own commit for HEAD.
func (c Checks) newSuite(attempt int, base gitops.Base, tree gitops.Tree) suite {
	commit := sync.OnceValues(func() (gitops.CommitOptions, error) { return c.Commit(base, time.Now()) })
	return suite{attempt: attempt, kind: fmt.Sprintf("verify-%d", attempt), base: base, tree: tree, changeTree: tree, commit: commit}
}

// treeAsInCI returns the suite's tree as CI would see it: HEAD is the commit to publish.
func (c Checks) treeAsInCI(s suite) gitops.TreeForCommands {
	return c.Workspace.TreeForCommands(s.base, s.tree, &gitops.Head{Branch: c.Branch, Commit: s.commit})
}

// phase returns the phase of the run to which the suite belongs.
func (s suite) phase() record.Phase {
	switch {
	case s.kind == appliesIf:
		return record.PhaseSetup
	case s.attempt == 0:
		return record.PhaseBaseline
	}
	return record.PhaseVerification
}

// describe describes a running check to people.
func (s suite) describe(check job.VerifyCheck) string {
	switch {
	case s.kind == appliesIf:
		return appliesIf
	case s.why != "":
		return "check " + check.Name + " " + s.why
	}
	return "check " + check.Name
}

// scriptFor returns the script of check i in a suite, with its place. log is the name of its log.
func (c Checks) scriptFor(s suite, i int, log string) confine.Script {
	check := c.Job.Verify[i]
	place := confine.Place{Scratch: s.kind, Disposable: true, Services: true, CommandKind: job.CommandsVerify}
	judgesChange := s.attempt > 0 && s.why == ""
	script := confine.Script{
		Name: check.Name, Run: check.Run, Dir: c.Workspace.WorkDir(c.Job.Repository.Path), Timeout: time.Duration(check.Timeout), Log: log,
		Place: place, UnreadyIsRed: judgesChange, Pipefail: s.kind != appliesIf, Hint: c.shallowHint,
	}
	if c.Sandboxes.Private() {
		script.Place.Root = c.Sandboxes.SandboxPath(confine.AgentPlace())
		if c.Sandboxes.AllowsConcurrent() {
			script.Place.Root = c.Record.Join(record.StateFolder, place.Scratch)
		}
	}
	return script
}

// runCheck runs a check on a fresh tree with its own /tmp and home folder, so that code of the agent in one
// check cannot influence the next. It removes the tree at the end.
func (c Checks) runCheck(ctx context.Context, s suite, script confine.Script, i int) (ran confine.ScriptResult, err error) {
	check := c.Job.Verify[i]
	defer c.Record.BeginStep(s.phase(), s.describe(check))()
	restoreTree, err := c.Sandboxes.MoveTreeAside()
	if err != nil {
		return ran, err
	}
	defer func() { err = errors.Join(err, restoreTree()) }()
	defer func() { err = errors.Join(err, c.removeFiles(script.Place)) }()
	if err := c.removeFiles(script.Place); err != nil { // left by a killed run
		return ran, err
	}
	script.Place.Begun = c.Sandboxes.Begin(script.Place)
	defer script.Place.Begun.End()
	if err := c.makeTree(ctx, s, &script); err != nil {
		return ran, freshTreeError(err)
	}
	before, err := c.reportsBefore(script, check)
	if err != nil {
		return ran, fmt.Errorf("look for reports of %s: %w", check.Name, err)
	}
	var leftovers []string // ignored files that the check left in its tree
	var keepErr error
	if s.keepsCaches {
		script.InspectLayer = func(ctx context.Context, layer gitops.Layer) error {
			leftovers, keepErr = c.Workspace.Checkout().InLayer(layer).IgnoredFiles(ctx, c.treeAsInCI(s).Snapshot)
			return nil
		}
	}
	if ran, err = c.Sandboxes.RunScript(ctx, script); err != nil {
		return ran, err
	}
	if err := c.saveReports(script, check, before); err != nil {
		return ran, fmt.Errorf("keep reports of %s: %w", check.Name, err)
	}
	if keepErr != nil {
		leftovers = nil // the list ends early
	}
	if s.keepsCaches && !ran.TimedOut {
		keepErr = errors.Join(keepErr, c.Sandboxes.KeepCaches(ctx, script.Place, leftovers, cachesScratch(i)))
	}
	if keepErr != nil && ctx.Err() == nil { // only a warning, because caches only save time
		c.Record.Warn("caches_not_kept", "The caches that %s filled on the base could not be kept for its later runs: %v.", check.Name, keepErr)
	}
	return ran, nil
}

func freshTreeError(err error) error { return fmt.Errorf("make a fresh tree to verify: %w", err) }

// makeTree makes the suite's tree for a check.
func (c Checks) makeTree(ctx context.Context, s suite, script *confine.Script) error {
	if c.Sandboxes.Overlaid() {
		return c.makeOverlay(ctx, s, script)
	}
	return c.Workspace.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: script.Place.Root, Untracked: c.Workspace.UntrackedDir(), TreeForCommands: c.treeAsInCI(s)})
}

// makeOverlay gives a check an overlay of its own above setup's files, and its own .git.
func (c Checks) makeOverlay(ctx context.Context, s suite, script *confine.Script) error {
	checkout := c.Workspace.Checkout()
	var err error
	if script.Place.Leftovers, err = c.mayTakeLeftovers(ctx, s, script.Place.Caches); err != nil {
		return err
	}
	folder := gitops.GitFolder{Dir: c.Sandboxes.GitFolder(script.Place), CopySettingsFrom: c.Sandboxes.GitFolder(confine.Place{Scratch: confine.SetupScratch}), TreeForCommands: c.treeAsInCI(s)}
	var index gitops.GitIndex
	isBase := s.tree == c.Workspace.Base().Tree // then the layer stays as it is
	script.WhileOpening = func(ctx context.Context) error {
		err := checkout.FillGitFolder(ctx, folder)
		if err == nil {
			index, err = checkout.IndexOf(ctx, folder)
		}
		if err == nil && isBase {
			err = index.Write(nil)
		}
		if err != nil {
			return freshTreeError(err)
		}
		return nil
	}
	script.PrepareLayer = func(ctx context.Context, layer gitops.Layer) error {
		if err := checkout.UnlinkSubmodules(ctx, layer, folder.Dir); err != nil {
			return err
		}
		if script.Place.Leftovers {
			if err := c.Sandboxes.AwaitNewerThanLeftovers(ctx, script.Place.Caches); err != nil {
				return err
			}
		}
		if isBase {
			return nil
		}
		written, err := checkout.InLayer(layer).Overwrite(ctx, c.Workspace.Base().Tree, s.tree)
		if err != nil {
			return err
		}
		return index.Write(written)
	}
	return checkout.MakeGitFolder(ctx, folder)
}

// removeFiles removes the tree of a check. An error ends the run, because the next check would find the files.
func (c Checks) removeFiles(p confine.Place) error {
	if err := c.Sandboxes.Remove(p); err != nil {
		return fmt.Errorf("remove what a check left: %w", err)
	}
	return nil
}

// SetUp runs the job's setup commands before the baseline and the first turn. If they change
// tracked files, it returns an error, because these changes would count as the agent's work.
func (c Checks) SetUp(ctx context.Context) error {
	if len(c.Job.Setup) == 0 {
		return nil
	}
	if err := c.Workspace.BeginSetup(ctx); err != nil { // the files of a failed setup can then be removed
		return err
	}
	for i, step := range c.Job.Setup {
		if err := c.setUpStep(ctx, i, step); err != nil {
			return err
		}
	}
	if err := c.Workspace.RequireUnchangedBySetup(ctx); err != nil {
		return withLockAdvice(err)
	}
	return c.Sandboxes.HideFilesFromSetup(ctx)
}

// lockFiles lists files that package managers rewrite, with the install command that does not.
var lockFiles = []struct{ file, run string }{
	{"package-lock.json", "npm ci"},
	{"npm-shrinkwrap.json", "npm ci"},
	{"pnpm-lock.yaml", "pnpm install --frozen-lockfile"},
	{"yarn.lock", "yarn install --immutable (yarn install --frozen-lockfile before version 2)"},
	{"uv.lock", "uv sync --locked"},
	{"Cargo.lock", "cargo fetch --locked"},
	{"go.sum", "go mod download"},
	{"Gemfile.lock", "bundle install with BUNDLE_FROZEN=true"},
	{"composer.lock", "composer install"},
}

// withLockAdvice adds the install command that does not change the lock file, if setup changed one.
func withLockAdvice(err error) error {
	var stop *outcome.Stop
	if !errors.As(err, &stop) || stop.Reason != "setup_changed_files" {
		return err
	}
	for _, lock := range lockFiles {
		if strings.Contains(stop.Message, lock.file) {
			with := *stop
			with.Message += fmt.Sprintf(" %s is a lock file: %s installs what it has, and leaves it alone.", lock.file, lock.run)
			return &with
		}
	}
	return err
}

// setUpStep runs a setup command. If it fails, the error has advice and the place of its log.
func (c Checks) setUpStep(ctx context.Context, i int, step job.SetupStep) error {
	name := cmp.Or(step.Name, fmt.Sprintf("setup %d", i+1))
	script := confine.Script{
		Name: name, Run: step.Run, Dir: c.Workspace.WorkDir(c.Job.Repository.Path), Timeout: time.Duration(step.Timeout), Log: record.LogName("setup", i+1, name),
		Place: confine.Place{Scratch: confine.SetupScratch, Network: step.Network, Key: fmt.Sprintf("setup[%d].network", i), Services: true, CommandKind: job.CommandsSetup},
	}
	ran, err := c.runCommand(ctx, record.PhaseSetup, "setup command "+name, "", script)
	if err != nil || ran.Color() == "green" {
		return err
	}
	output, err := c.Record.HeadAndTail(script.Log, maxTestFileBytes, maxTestFileBytes)
	if err != nil {
		return fmt.Errorf("read log of %s: %w", name, err)
	}
	key, network := script.Place.Key, step.Network
	if network.IsZero() {
		key, network = "policy.network", c.Job.Policy.Network
	}
	advice := cmp.Or(networkAdvice(key, network, step.Run, output), "Correct the command, or install what it needs.")
	if ran.TimedOut {
		advice = "Raise setup[].timeout."
	}
	return outcome.Stopf(outcome.InvalidInput, "setup_failed", "The setup command %q %s (%s). %s", name, describeFailure(ran), c.Record.DescribeLogPlace(script.Log), advice)
}

// describeFailure says how a command failed, as the end of a sentence about it.
func describeFailure(ran confine.ScriptResult) string {
	if ran.TimedOut {
		return "ran into its time limit"
	}
	return fmt.Sprintf("failed with exit status %d", ran.ExitCode)
}

// runCommand runs and records a command before the agent. step describes it to people. kind is as in recordCommand.
func (c Checks) runCommand(ctx context.Context, phase record.Phase, step, kind string, script confine.Script) (confine.ScriptResult, error) {
	endStep := c.Record.BeginStep(phase, step)
	ran, err := c.Sandboxes.RunScript(ctx, script)
	endStep()
	if err == nil {
		err = c.recordCommand(kind, script, ran)
	}
	return ran, err
}

// recordCommand records a command that ran before the agent. kind is empty for a setup command.
func (c Checks) recordCommand(kind string, script confine.Script, ran confine.ScriptResult) error {
	tail, err := c.tail(ran.Color(), script.Log)
	if err != nil {
		return err
	}
	return c.Record.Append(transcript.Setup{
		Kind: kind, Name: script.Name, Run: script.Run, ExitCode: ran.ExitCode, Seconds: ran.Seconds, Log: script.Log, Tail: tail,
	})
}
