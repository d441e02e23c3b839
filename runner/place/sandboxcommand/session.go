package sandboxcommand

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Session is an open sandbox for a person's commands, which are confined and judged as in a run.
type Session struct {
	prepared *Prepared
	boxes    *confine.Sandboxes
	box      *sandbox.Sandbox
	gitMark  *guard.Mark // nil if commands cannot write git's files
}

// Open opens a sandbox. An error with a remedy is an outcome.Stop. The caller closes the session.
func Open(ctx context.Context, o Options) (*Session, error) {
	begun := o.startEarly()
	defer begun.End() // does nothing once the sandbox has taken over the process
	p, err := Prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Session{prepared: p}
	if err := s.open(ctx, begun); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := s.markGit(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startEarly starts the sandbox's inner process before the configuration is read, to save time. It returns nil for
// commands without a sandbox.
func (o Options) startEarly() *sandbox.EarlyProcess {
	if o.Mode == string(grants.DangerFullAccess) {
		return nil
	}
	return sandbox.StartEarly(sandbox.Network(cmp.Or(o.Network, string(sandbox.NetworkLoopback))))
}

// open opens the sandbox in the way it is opened for an agent's commands.
func (s *Session) open(ctx context.Context, begun *sandbox.EarlyProcess) error {
	p := s.prepared
	rules, err := settings.ReadRules(ctx, p.Workspace.Commit(), p.Job.Policy.Rules)
	if err != nil {
		return err
	}
	if s.boxes, err = p.Sandboxes(rules); err != nil {
		return err
	}
	if s.boxes.Authorities, err = p.Authorities(ctx); err != nil {
		return err
	}
	if err := s.boxes.CheckMachineProxy(); err != nil {
		return err
	}
	if s.boxes.Credentials, err = p.Credentials(ctx, job.CommandsAgent); err != nil {
		return err
	}
	if err := s.boxes.SetUpSecrets(); err != nil {
		return err
	}
	s.boxes.LinkProgram(v4a.Program)
	if err := s.boxes.HideSecretFiles(ctx); err != nil {
		return err
	}
	if len(p.Job.Policy.Secrets) > 0 { // CheckOthersConfinable protects the files of secrets that this command does not get
		if err := s.boxes.CheckOthersConfinable(ctx); err != nil {
			return err
		}
	}
	s.box, err = s.boxes.Open(ctx, confine.Place{Scratch: confine.AgentScratch, CommandKind: job.CommandsAgent, Begun: begun})
	return err
}

// Warnings returns remarks on the configuration and the confinement.
func (s *Session) Warnings() (all []string) {
	for _, w := range s.prepared.Record.Warnings() {
		all = append(all, w.Message)
	}
	switch level := s.box.Level(); level {
	case sandbox.LevelFull: // nothing is missing
	case sandbox.LevelNone:
		all = append(all, confine.UnconfinedNotice)
	default:
		all = append(all, fmt.Sprintf("Commands are confined at the level %s, which is not all that there can be; agent-ci doctor says what is missing.", level))
	}
	return all
}

// Network describes the commands' network and how to extend it. It returns "" for the machine's network.
func (s *Session) Network() string {
	const more = ` If it needs more, allow hosts by --network '{allow: [proxy.golang.org]}' or by policy.network; --network full allows everything.`
	switch network := s.boxes.Network(); network {
	case string(sandbox.NetworkFull):
		return ""
	case string(sandbox.NetworkNone):
		return "The command had no network, not even 127.0.0.1." + more
	case string(sandbox.NetworkLoopback):
		return "The command could only reach 127.0.0.1 inside of its sandbox (policy.network: loopback)." + more
	default:
		return "The command could only reach this (policy.network): " + network + "." + more
	}
}

// Start starts a command with streams, or with a terminal whose output goes to Output. Errors with
// a remedy, such as a refusal by the rules, are an outcome.Stop.
func (s *Session) Start(c sandbox.Command) (*sandbox.Process, error) {
	c.Dir, c.Env = s.prepared.Dir, s.boxes.AgentEnv(confine.AgentPlace())
	if d := s.boxes.CommandRules().Decide(policy.Request{Argv: c.Argv, Dir: c.Dir}); d.Action == policy.Refuse {
		return nil, outcome.Stopf(outcome.PolicyViolation, "command", "%s", d.Words())
	}
	return s.box.Start(c)
}

// Close ends all commands and removes leftovers. The error may report changes of git's files.
func (s *Session) Close() error {
	if !s.box.KillAll() { // remaining processes could still write, so close first
		return errors.Join(s.box.Close(), s.removeLeftovers())
	}
	closed := make(chan error, 1)
	go func() { closed <- s.box.Close() }() // Close waits until the namespaces end
	err := s.removeLeftovers()
	return errors.Join(<-closed, err)
}

// removeLeftovers checks git's files and removes the working files.
func (s *Session) removeLeftovers() error {
	return errors.Join(s.requireUnchangedGit(context.Background()), s.prepared.Close())
}
