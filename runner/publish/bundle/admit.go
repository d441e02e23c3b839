package bundle

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Admit judges a proposal's change by this half's rules and sets the proposal's pre_publish hooks:
// those of the base commit, of the job file here and of the operator. The bundle's own hook
// definitions are ignored.
func (h SecondHalf) Admit(ctx context.Context, b Bundle, p *publish.Proposal) (*proposals.Lessons, error) {
	lessons := proposals.Recorded(h.Record, b.View).In(h.Workspace, p.Job, false)
	lessons.RecordChecks(p.Table.Rows)
	follow := lessons.Follow(nil)
	p.Follow.Judge, p.Follow.MoveOnto, p.Follow.Lessons = follow.Judge, follow.MoveOnto, lessons.Brought
	if p.Change.Empty() {
		return lessons, nil
	}
	if err := p.Follow.Judge(ctx, p.Job, p.Change); err != nil {
		return nil, err
	}
	all, err := hooks.Find(ctx, h.Operator, p.Job, h.Workspace.Commit(), h.Source.Env.Get("HOME"))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h hooks.Hook) bool { return h.On != job.OnPrePublish })
	if err := b.operatorsGiven(all); err != nil || len(all) == 0 {
		return lessons, err
	}
	boxes, err := h.openSandboxes(ctx, p)
	if err != nil {
		return nil, err
	}
	p.Hooks = hooks.New(all, boxes, boxes.Root)
	p.Hooks.Sandboxes.WritableByCommands = append(p.Hooks.Sandboxes.WritableByCommands, h.Workspace.Root())
	return lessons, p.Hooks.List()
}

// operatorsGiven refuses a bundle whose run had an operator's pre_publish hook, missing here.
// Another machine may have a changed version of the hook.
func (b Bundle) operatorsGiven(now []hooks.Hook) error {
	for _, use := range b.View.Hooks {
		is := func(h hooks.Hook) bool { return h.Name == use.Name }
		if use.On == job.OnPrePublish && strings.HasPrefix(use.Name, hooks.OperatorPrefix) && !slices.ContainsFunc(now, is) {
			return outcome.Stopf(outcome.InvalidInput, "operator_file",
				"The run had the hook %.100q on pre_publish, which is missing now; publish with the operator's file (--operator-file).", use.Name)
		}
	}
	return nil
}

// changeFolder of the run directory has the tree of the change, for hooks to see.
const changeFolder = record.StateFolder + "/change"

// openSandboxes opens sandboxes with a fresh tree of the change, without the job's services, MCP servers,
// secrets and network. The agent does not work there.
func (h SecondHalf) openSandboxes(ctx context.Context, p *publish.Proposal) (*confine.Sandboxes, error) {
	for _, name := range []string{changeFolder, confine.ScratchFolder} { // which whoever made the bundle may have filled
		h.Record.Remove(name)
	}
	tree := h.Record.Join(changeFolder)
	if err := h.Workspace.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: tree, TreeForCommands: gitops.TreeForCommands{Tree: p.Change.Tree, Base: p.Base}}); err != nil {
		return nil, err
	}
	j := *p.Job
	j.Services, j.MCPServers, j.Policy.Secrets, j.Policy.Network = nil, nil, nil, job.Network{Mode: "none"}
	boxes := &confine.Sandboxes{Record: h.Record, Environ: h.Source.Env, Job: &j, Root: tree, Dir: tree, BaseTree: h.Workspace.BaseTree()}
	return boxes, boxes.Confine(ctx)
}
