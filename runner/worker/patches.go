package worker

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// patchInCommand applies what a command would have applied, unless the job
// switches the tool off.
func (a *Agent) patchInCommand(p *patch.Patcher) func(ctx context.Context, dir, text string) (tools.Result, error) {
	return func(ctx context.Context, dir, text string) (tools.Result, error) {
		if words := a.conversation.Tools.Registry.Denial(patchTool); words != "" {
			return tools.Refuse(words), nil
		}
		return p.Apply(ctx, dir, text)
	}
}

// keepPatch is called by one goroutine at a time: a call that mutates runs alone.
func (a *Agent) keepPatch(text string) error {
	a.patches++
	return a.Record.Write(patchName(a.patches), []byte(a.Record.Redact(text)))
}

func patchName(n int) string { return fmt.Sprintf("%s/%03d.patch", record.PatchesFolder, n) }

// ApplyPatches does again in a fresh checkout what an agent that was stopped did, as
// far as patches did it.
func (a *Agent) ApplyPatches(ctx context.Context) error {
	box := sandbox.Later(ctx, a.Sandboxes.Options(confine.Agent()))
	defer box.Close()
	at := a.see(box)
	defer at.close()
	patcher := patch.New(patch.Options{Dir: at.dir, Offer: tools.Freeform, View: at.view, Protect: a.whyProtected})
	for n := 1; n <= a.patches; n++ {
		text, err := a.Record.Read(patchName(n))
		if err != nil {
			return fmt.Errorf("read %s: %w", patchName(n), err)
		}
		result, err := patcher.Apply(ctx, a.workDir(), string(text))
		if err != nil {
			return err
		}
		if result.Failed {
			a.Record.Warn("patch_not_repeated", "%s could not be applied again in this checkout: %s", patchName(n), strings.TrimSpace(result.Output))
		}
	}
	return nil
}

// keepsProtected says that no change of a protected path is published.
func keepsProtected(p job.Policy) bool {
	return p.OnProtected == "drop" || p.Change.Protected == "fail"
}

// whyProtected tells the model why a path below the working directory must
// stay as it is: a change of it would not be published.
func (a *Agent) whyProtected(name string) string {
	full := path.Join(a.Job.Repository.Path, name)
	if words := a.whyNotMine(full); words != "" {
		return words
	}
	if !keepsProtected(a.Job.Policy) {
		return ""
	}
	protected, err := policy.Protected(a.Job.Policy.Protect, full)
	if err != nil || !protected { // a bad pattern ends the run when the change is judged
		return ""
	}
	return full + " is protected by the job (policy.protect): a change that touches it is not published. Leave it as it is and say in your last message what should change there."
}
