package sandboxcommand

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// Sandbox is one for commands that a person gives, made and judged as that of a
// run's agent.
type Sandbox struct {
	around *Surroundings
	box    *sandbox.Sandbox // nil while it is not open
}

// Open opens it. An error that is an outcome.Stop says what to do. The caller
// closes it.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	begun := o.begin()
	defer begun.End() // unless it is taken
	around, err := LookAround(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{around: around}
	if err := s.open(ctx, begun); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin starts the process inside before it is known what it is to be told, for
// the network that it will most likely be.
func (o Options) begin() *sandbox.Begun {
	if o.Mode == string(grants.DangerFullAccess) {
		return nil
	}
	return sandbox.Begin(sandbox.Network(cmp.Or(o.Network, string(sandbox.NetworkLoopback))))
}

func (s *Sandbox) open(ctx context.Context, begun *sandbox.Begun) (err error) {
	boxes, space := s.around.Sandboxes, s.around.Workspace
	if boxes.Rules, err = settings.ReadRules(ctx, space.Commit(), s.around.Job.Policy.Rules); err != nil {
		return err
	}
	boxes.LinkProgram("apply_patch")
	if err := boxes.Hide(ctx); err != nil {
		return err
	}
	if s.box, err = boxes.Open(ctx, confine.Place{Scratch: confine.AgentScratch, Begun: begun}); err != nil {
		return err
	}
	return space.MarkGit(ctx, s.box.Level())
}

// Warnings are what to know of the configuration and of the confinement.
func (s *Sandbox) Warnings() []string {
	var all []string
	for _, w := range s.around.Record.Warnings() {
		all = append(all, w.Message)
	}
	switch level := s.box.Level(); level {
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
func (s *Sandbox) Start(c sandbox.Command) (*sandbox.Process, error) {
	boxes, dir := s.around.Sandboxes, s.around.Dir
	if d := boxes.Commands().Decide(policy.Request{Argv: c.Argv, Dir: dir}); d.Action == policy.Refuse {
		return nil, outcome.Stopf(outcome.PolicyViolation, "command", "%s", d.Words())
	}
	c.Dir, c.Env = dir, boxes.AgentEnv()
	return s.box.Start(c)
}

// Close ends all that was started and removes what it left outside the
// checkout. The error may be what commands did to git.
func (s *Sandbox) Close() error {
	if s.box == nil {
		return s.around.Close()
	}
	if !s.box.Empty() {
		return errors.Join(s.box.Close(), s.letGo())
	}
	closed := make(chan error, 1)
	go func() { closed <- s.box.Close() }()
	err := s.letGo()
	return errors.Join(<-closed, err)
}

func (s *Sandbox) letGo() error {
	unchanged := s.around.Workspace.GitUnchanged(context.Background())
	return errors.Join(unchanged, s.around.Close())
}
