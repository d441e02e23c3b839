package runner

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/bundle"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// changeFolder of the run directory has the tree of a bundle's change, for hooks to see.
const changeFolder = record.StateFolder + "/change"

// hooksOfBundle has hooks asked before a bundle is published: those of the base commit, of the
// job file here and of the operator. What the bundle says of hooks counts for nothing.
func (in *invocation) hooksOfBundle(ctx context.Context, so *reached, b bundle.Bundle, p *publish.Proposal) error {
	operators, err := settings.ReadOperatorFile(ctx, in.operator, so.workspace.Root())
	if err != nil {
		return err
	}
	if err := operatorsGiven(b.View.Hooks, operators); err != nil {
		return err
	}
	all, err := hooks.Collect(operators, p.Job.Hooks, so.workspace.Commit().ReadBase, in.env.Get("HOME"))
	all = slices.DeleteFunc(all, func(h hooks.Hook) bool { return h.On != job.OnPrePublish })
	if err != nil || len(all) == 0 {
		return err
	}
	boxes, err := in.boxesOfBundle(ctx, so, p)
	if err != nil {
		return err
	}
	folder := path.Clean(p.Job.Repository.Path)
	so.hooks = &hooks.Hooks{
		All: all, Record: in.rec,
		Facts: hooks.Facts{
			RunID: in.rec.ID, Model: p.Job.Model.Name, Root: boxes.Root, Path: folder, WorkDir: path.Join(boxes.Root, folder), Transcript: in.rec.Join(record.TranscriptFile),
		},
		Rooms: hooks.Rooms{Environ: in.env, BaseTree: boxes.BaseTree, Open: hookRoom(boxes), Changeable: append(boxes.Changeable(), so.workspace.Root())},
	}
	in.warnOfOpenHooks(boxes)
	p.Ask = in.askOfDraft(so)
	return nil
}

// operatorsGiven makes sure that a bundle whose run had hooks of the operator before publishing is
// not published without them. They may have changed: the machine is another.
func operatorsGiven(had []transcript.HookUse, now map[string]job.Hook) error {
	for _, use := range had {
		name, is := strings.CutPrefix(use.Name, hooks.OperatorPrefix)
		if is && use.On == job.OnPrePublish && now[name].On != job.OnPrePublish {
			return outcome.Stopf(outcome.InvalidInput, "operator_file",
				"The run had the hook %.100q on pre_publish, which there is not now; publish with the operator's file (--operator-file).", use.Name)
		}
	}
	return nil
}

// boxesOfBundle opens sandboxes that see a fresh tree of a bundle's change. Nobody works there,
// and nothing of the job but its rules on files counts.
func (in *invocation) boxesOfBundle(ctx context.Context, so *reached, p *publish.Proposal) (*confine.Sandboxes, error) {
	for _, name := range []string{changeFolder, confine.ScratchFolder} { // which whoever made the bundle may have filled
		in.rec.Remove(name)
	}
	tree := in.rec.Join(changeFolder)
	if err := so.workspace.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: tree, Shown: gitops.Shown{Tree: p.Change.Tree, Base: p.Base}}); err != nil {
		return nil, err
	}
	j := *p.Job
	j.Services, j.MCPServers, j.Policy.Secrets, j.Policy.Network = nil, nil, nil, job.Network{Mode: "none"}
	boxes := &confine.Sandboxes{
		Record: in.rec, Environ: in.env, Job: &j, Root: tree, Dir: tree, BaseTree: so.workspace.BaseTree(),
	}
	return boxes, boxes.Confine(ctx)
}
