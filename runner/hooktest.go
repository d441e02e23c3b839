package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// HookTestOptions say which run is put to which hooks.
type HookTestOptions struct {
	RunDir   string
	Dir      string // the checkout whose defaults and files count; empty means the current folder
	JobFile  string
	Set      []string
	Operator string // path of the operator's file; empty for none

	Environ  []string
	Reserved []string
	Version  string
}

// HookTested is what a hook decides now, and what it had decided.
type HookTested struct {
	Now transcript.Hook  `json:"now"`
	Was *transcript.Hook `json:"was,omitempty"` // nil where the record has no such answer
}

// Differs says that the record has another answer, or none.
func (t HookTested) Differs() bool {
	if t.Was == nil {
		return t.Now.Decision != transcript.HookPass
	}
	return t.Now.Decision != t.Was.Decision || t.Now.Reason != t.Was.Reason || t.Now.After != t.Was.After || t.Now.Context != t.Was.Context
}

// HooksTested is what came of a test.
type HooksTested struct {
	Hooks   []transcript.HookUse `json:"hooks"`
	Answers []HookTested         `json:"answers"`
	// Gone are answers of the record that nobody gives now.
	Gone []transcript.Hook `json:"gone"`
	// Unknown are calls whose whole output is not on record, since a hook kept it from the model:
	// hooks are not asked of it.
	Unknown []transcript.CallRef `json:"unknown,omitempty"`
}

// Differences is how many answers are not those of the record.
func (t *HooksTested) Differences() int {
	n := len(t.Gone)
	for _, a := range t.Answers {
		if a.Differs() {
			n++
		}
	}
	return n
}

// TestHooks puts what a recorded run would ask to the hooks of the present configuration, in
// their sandbox, and compares what they decide with the record. No tool is run and nobody else
// is asked.
func TestHooks(ctx context.Context, o HookTestOptions) (tested *HooksTested, err error) {
	recorded, err := readRecorded(ReplayOptions{RunDir: o.RunDir, Environ: o.Environ})
	if err != nil {
		return nil, err
	}
	defer recorded.rec.Close()
	in := newInvocation(recorded.Started.RunID, settings.Given{JobFile: o.JobFile, Set: o.Set}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Quiet: true})
	in.operator = o.Operator
	folder, err := os.MkdirTemp("", "agent-ci-hooks-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer sandbox.RemoveScratch(folder)
	tested = &HooksTested{Answers: []HookTested{}, Gone: []transcript.Hook{}}
	if err := in.rec.Make(folder, tested.take); err != nil {
		return nil, err
	}
	defer in.rec.Close()
	so := &reached{}
	defer so.close()
	if err := in.openForHooks(ctx, so, cmp.Or(o.Dir, ".")); err != nil {
		return nil, err
	}
	if so.hooks == nil { // what the record has is gone then
		so.hooks = &hooks.Hooks{Record: in.rec}
	}
	if err := tested.rehearse(ctx, so.hooks, recorded); err != nil {
		return nil, err
	}
	tested.Hooks = so.hooks.Uses()
	return tested, nil
}

// openForHooks finds the hooks of a checkout and of what was given, and where they run.
func (in *invocation) openForHooks(ctx context.Context, so *reached, dir string) (err error) {
	in.dir = dir
	if so.workspace, err = workspace.Open(ctx, in.rec, workspace.Options{Dir: dir, Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()}); err == nil {
		err = so.workspace.StartOn(ctx, "")
	}
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	if so.settings, err = in.source.LoadTemplate(ctx, so.workspace.Commit()); err != nil {
		return err
	}
	in.keepOut(so.job())
	j := *so.job()
	j.Services, j.MCPServers, j.Policy.Secrets, j.Policy.Network = nil, nil, nil, job.Network{Mode: "none"}
	so.boxes = &confine.Sandboxes{
		Record: in.rec, Environ: in.env, Job: &j, Root: so.workspace.Root(), Dir: dir, BaseTree: so.workspace.BaseTree(),
		LeaveOut: so.workspace.LeaveOut,
	}
	if err := so.boxes.Confine(ctx); err != nil {
		return err
	}
	return in.readyHooks(ctx, so, hooks.Past{})
}

// take notes an answer.
func (t *HooksTested) take(e transcript.Event) {
	var d transcript.Hook
	if e.Type == transcript.TypeHook && json.Unmarshal(e.Data, &d) == nil {
		t.Answers = append(t.Answers, HookTested{Now: d})
	}
}

// rehearse puts the events of a record to hooks, and finds the answers that the record has.
func (t *HooksTested) rehearse(ctx context.Context, asked *hooks.Hooks, recorded recordedRun) error {
	body, err := recorded.rec.Read(record.PullRequestFile)
	diff, none := recorded.rec.Read(record.PatchFile)
	for _, err := range []error{err, none} {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	r := &hooks.Rehearsal{Hooks: asked, Body: string(body), Diff: string(diff), Read: recorded.rec.Read}
	var were []transcript.Hook
	if _, err := recorded.rec.Survey(func(v *transcript.View, e transcript.Event) error {
		if e.Type == transcript.TypeHook {
			var d transcript.Hook
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			were = append(were, d)
		}
		return r.Take(ctx, v, e)
	}); err != nil {
		return err
	}
	t.Unknown = r.Unknown
	t.match(were)
	return nil
}

// match puts the answers of a record beside those of now.
func (t *HooksTested) match(were []transcript.Hook) {
	used := make([]bool, len(were))
	for i := range t.Answers {
		now := &t.Answers[i]
		for j, was := range were {
			if !used[j] && was.Name == now.Now.Name && was.On == now.Now.On && was.Ref() == now.Now.Ref() {
				used[j], now.Was = true, &were[j]
				break
			}
		}
	}
	for j, was := range were {
		if !used[j] && !(was.On == job.OnPostTool && slices.Contains(t.Unknown, was.Ref())) {
			t.Gone = append(t.Gone, was)
		}
	}
}
