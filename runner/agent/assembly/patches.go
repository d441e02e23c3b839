package assembly

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// patchInCommand returns the function that applies a patch in a command, such as apply_patch <<EOF. It refuses the
// patch if the job denies the patch tool.
func (a *Agent) patchInCommand(p *patch.Patcher) func(ctx context.Context, dir, text string) (tools.Result, error) {
	return func(ctx context.Context, dir, text string) (tools.Result, error) {
		if denial := a.conversation.Tools.Registry.Denial(patchTool); denial != "" {
			return tools.Refuse(denial), nil
		}
		return p.Apply(ctx, dir, text)
	}
}

// changeSaver returns a function that saves a change of this kind in the run directory. The changes of all agents are
// numbered together. It needs no lock, because mutating calls run alone.
func (a *Agent) changeSaver(kind string) func(text string) error {
	if a.Subagent != nil {
		return a.Subagent.starter.changeSaver(kind)
	}
	return func(text string) error {
		a.patchCount++
		return a.Record.Write(changeName(a.patchCount, kind), []byte(a.Record.Redact(text)))
	}
}

// SaveUncalledChange saves a change of the agent's tree that was not made by a call.
func (a *Agent) SaveUncalledChange(ctx context.Context, change *gitops.ChangeSet) error {
	return a.Workspace.RecordMerge(ctx, change, a.changeSaver(mergeChange))
}

// Kinds of saved changes. Paths in a patch or diff are relative to the working directory, those in a merge to the
// checkout's root.
const (
	patchChange = "patch"
	diffChange  = "diff"
	mergeChange = "merge.diff"
)

// changeName returns the path of the n-th saved change, relative to the run directory.
func changeName(n int, kind string) string {
	return fmt.Sprintf("%s/%03d.%s", record.PatchesFolder, n, kind)
}

// ApplyPatches applies the saved patches, diffs and merges of a stopped agent to a new checkout. It warns about each
// one that cannot be applied.
func (a *Agent) ApplyPatches(ctx context.Context) error {
	box := sandbox.OpenOnFirstUse(ctx, a.Sandboxes.Options(confine.AgentPlace()))
	defer box.Close()
	view := a.newTreeView(box)
	defer view.close()
	patcher := patch.New(patch.Options{Dir: view.workDir, Offer: tools.Freeform, View: view.view, Protect: a.protectedRefusal})
	for n := 1; n <= a.patchCount; n++ {
		kind := a.savedKind(n)
		name := changeName(n, kind)
		text, err := a.Record.Read(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		var result tools.Result
		switch kind {
		case mergeChange:
			result, err = a.repeatMerge(ctx, box, string(text))
		case diffChange:
			result, err = patcher.ApplyDiff(ctx, string(text))
		default:
			result, err = patcher.Apply(ctx, a.workDir(), string(text))
		}
		if err != nil {
			return err
		}
		if result.Failed {
			a.Record.Warn("patch_not_repeated", "%s could not be applied again in this checkout: %s", name, strings.TrimSpace(result.Output))
		}
	}
	return nil
}

// savedKind returns the kind of the n-th saved change, which its file name tells.
func (a *Agent) savedKind(n int) string {
	for _, kind := range []string{mergeChange, diffChange} {
		if a.Record.Has(changeName(n, kind)) {
			return kind
		}
	}
	return patchChange
}

// repeatMerge applies the saved diff of a merge to the agent's tree in box.
func (a *Agent) repeatMerge(ctx context.Context, box *sandbox.Sandbox, diff string) (tools.Result, error) {
	into, err := a.Sandboxes.LayerOf(box, confine.AgentPlace())
	if err != nil {
		return tools.Result{}, err
	}
	defer into.Close()
	if err := a.Workspace.RepeatMerge(ctx, into, diff); err != nil && ctx.Err() == nil {
		return tools.Refuse(err.Error()), nil
	}
	return tools.Result{}, ctx.Err()
}

// neverPublishesProtected reports whether the job never publishes changes of protected paths.
func neverPublishesProtected(p job.Policy) bool {
	return p.Change.Protected == "drop" || p.Change.Protected == "fail"
}

// protectedRefusal returns a text that tells the model that a change of the file name would not be published, or "" if
// it may be. name is relative to the working directory.
func (a *Agent) protectedRefusal(name string) string {
	full := path.Join(a.Job.Repository.Path, name)
	if refusal := a.foreignPathRefusal(full); refusal != "" {
		return refusal
	}
	if !neverPublishesProtected(a.Job.Policy) {
		return ""
	}
	isProtected, err := policy.Protected(a.Job.Policy.Protect, full)
	if err != nil || !isProtected { // an invalid pattern ends the run later, when the change is judged
		return ""
	}
	return full + " is protected by the job (policy.protect): a change that touches it is not published. Leave it as it is and say in your last message what should change there."
}
