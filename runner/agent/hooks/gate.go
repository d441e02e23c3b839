package hooks

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

var _ tools.Gate = (*Hooks)(nil)

// After asks hooks about a result: the job's up to the first refusal, then the operator's, which see what the
// model gets. Hooks see the whole of a long output, from whole. The returned bool reports whether the model may
// see it as well: no hook refused or replaced the output.
func (h *Hooks) After(ctx context.Context, tool string, call tools.Call, result tools.Result, whole func() (string, error)) (tools.Result, bool) {
	all := h.forEvent(job.OnPostToolUse)
	operators := OperatorHooks(all)
	seen := reviewedResult{result, result.Output, whole, true}
	for _, some := range [][]Hook{all[len(operators):], operators} {
		seen = h.after(ctx, some, tool, call, seen)
	}
	h.forgetPatch(call)
	return seen.result, seen.allowed
}

// reviewedResult is a call's result for the model, and access to the whole output.
type reviewedResult struct {
	result   tools.Result
	original string // the output before hooks changed it
	whole    func() (string, error)
	allowed  bool
}

// forHook returns the result with its whole output, as long as no hook withheld or replaced it.
func (o reviewedResult) forHook() (tools.Result, error) {
	if !o.allowed {
		return o.result, nil
	}
	text, err := o.whole()
	shown := o.result
	shown.Output = strings.TrimSuffix(text, "\n") + strings.TrimPrefix(o.result.Output, strings.TrimSuffix(o.original, "\n"))
	return shown, err
}

// after asks hooks about a result, up to the first refusal, and returns the result after their replies.
func (h *Hooks) after(ctx context.Context, some []Hook, tool string, call tools.Call, seen reviewedResult) reviewedResult {
	for _, one := range some {
		shown, err := seen.forHook()
		if err != nil {
			return reviewedResult{result: withholdResult(seen.result, one.failureText(err))}
		}
		for _, as := range h.resultQuestions(one, tool, call) {
			about := as.claudeInput(call)
			about["tool_response"] = as.claudeResponse(shown)
			r, err := h.ask(ctx, one, question{call: refOf(call), input: about, replaceable: seen.result.Output})
			if err != nil {
				return reviewedResult{result: withholdResult(seen.result, one.failureText(err))}
			}
			refused := r.refuses() && !r.feedback
			seen.result, seen.allowed = one.applyReply(seen.result, r), seen.allowed && !refused && r.output == nil
			if refused {
				return seen
			}
		}
	}
	return seen
}

// resultQuestions returns a hook's questions about a result: the call, and each patch applied for it.
func (h *Hooks) resultQuestions(one Hook, tool string, call tools.Call) (all []claudeCall) {
	h.mu.Lock()
	all = slices.DeleteFunc(slices.Clone(h.patched[refOf(call)]), func(as claudeCall) bool { return !one.matchesPatch(as) })
	h.mu.Unlock()
	if one.matches(tool, call) {
		all = append(all, h.toClaudeCall(tool, call))
	}
	return all
}

// applyReply applies a hook's reply to a result. A failed hook, or one ending the run, withholds the
// output. A blocking hook's reason follows the output.
func (h Hook) applyReply(result tools.Result, r reply) tools.Result {
	switch {
	case r.failure != "" && !r.continued:
		return withholdResult(result, "The output is withheld: the hook "+h.Name+", which has to agree, did not answer cleanly: "+shorten(r.failure)+". The call itself was run.")
	case r.refuses() && !r.feedback:
		return withholdResult(result, "The output is withheld by the hook "+h.Name+": "+sentence(r.words())+" The call itself was run.")
	case r.output != nil:
		failed := result.Failed
		result = withholdResult(result, *r.output)
		result.Failed = failed
	}
	if r.feedback {
		result = appendText(result, "The hook "+h.Name+" says of this: "+sentence(r.words()))
	}
	if r.context != "" {
		result = appendText(result, h.addedContext(r))
	}
	return result
}

// withholdResult replaces the model's whole result by words.
func withholdResult(result tools.Result, words string) tools.Result {
	result.Output, result.Images, result.Failed = words, nil, true
	return result
}

// appendText adds words to the output.
func appendText(result tools.Result, words string) tools.Result {
	result.Output = strings.TrimSuffix(result.Output, "\n") + "\n" + words + "\n"
	return result
}

// Patch is a patch before its application.
type Patch struct {
	Edits []tree.Edit // paths are below the working directory
	Diff  string      // unified
}

// ReviewPatch asks every hook whether a patch may be applied, whatever made it. refusal says why not; ""
// allows it. aside is text of the hooks that the model gets in addition.
func (h *Hooks) ReviewPatch(ctx context.Context, p Patch) (refusal, aside string) {
	call, _ := tools.CallOf(ctx)
	edits := h.patchCalls(p)
	var words []string
	for _, hook := range h.All {
		for _, input := range h.patchInputs(hook, p, call, edits) {
			r, err := h.ask(ctx, hook, question{call: refOf(call), input: input})
			switch {
			case err != nil:
				return hook.failureText(err), ""
			case r.refuses():
				return hook.refusal(r), ""
			case r.context != "":
				words = append(words, hook.addedContext(r)+"\n")
			}
		}
	}
	// Output hooks see an edit tool's own call anyway. The patch of another tool, such as a command, is stored for them.
	isEditTool := dialect.Is(tools.OwnToolNamed(call.Name), dialect.Edits)
	if h.HasOutputHooks() && !isEditTool {
		h.rememberPatch(call, edits)
	}
	return "", strings.Join(words, "")
}

// patchInputs returns the inputs of the questions about a patch that a hook is asked; none if the patch does
// not concern it. edits are the patch in the form of patchCalls.
func (h *Hooks) patchInputs(one Hook, p Patch, call tools.Call, edits []claudeCall) (all []map[string]any) {
	switch one.On {
	case job.OnPrePatch:
		files := make([]tree.Change, len(p.Edits)) // paths are below the root of the repository
		for i, e := range p.Edits {
			files[i] = e.Change
			files[i].Path = path.Join(h.Facts.Path, e.Path)
			if e.MovedFrom != "" {
				files[i].MovedFrom = path.Join(h.Facts.Path, e.MovedFrom)
			}
		}
		return []map[string]any{{"patch": map[string]any{"files": files, "diff": p.Diff}}}
	case job.OnPreToolUse:
		tool := tools.OwnToolNamed(call.Name)
		own := dialect.Is(tool, dialect.Edits) // then hooks were asked about the call itself, unless its path is a link
		asked := h.toClaudeCall(tool, call).input["file_path"]
		for _, as := range edits {
			if one.matchesPatch(as) && !(own && (as.tool == dialect.ApplyPatch || as.input["file_path"] == asked)) {
				all = append(all, as.claudeInput(call))
			}
		}
	}
	return all
}

// patchCalls returns a patch in Claude Code's form, file by file, and in Codex's, whole. A moved file is
// written in one place and edited away in the other.
func (h *Hooks) patchCalls(p Patch) (all []claudeCall) {
	var whole strings.Builder
	for _, e := range p.Edits {
		if e.Op == v4a.Add || e.MovedFrom != "" {
			all = append(all, claudeCall{"Write", map[string]any{"file_path": h.inWorkDir(e.Path), "content": e.Text}})
		} else {
			all = append(all, claudeCall{"Edit", map[string]any{"file_path": h.inWorkDir(e.Path), "old_string": e.Old, "new_string": e.New, "replace_all": false}})
		}
		if e.MovedFrom != "" {
			all = append(all, claudeCall{"Edit", map[string]any{"file_path": h.inWorkDir(e.MovedFrom), "old_string": e.Old, "new_string": "", "replace_all": false}})
		}
		whole.WriteString(v4a.Format(e.Op, e.Path, e.MovedFrom, e.Old, e.New))
	}
	return append(all, claudeCall{dialect.ApplyPatch, map[string]any{"command": "*** Begin Patch\n" + whole.String() + "*** End Patch\n"}})
}

// rememberPatch stores a patch for hooks on its result.
func (h *Hooks) rememberPatch(call tools.Call, edits []claudeCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.patched == nil {
		h.patched = map[transcript.CallRef][]claudeCall{}
	}
	h.patched[refOf(call)] = append(h.patched[refOf(call)], edits...)
}

func (h *Hooks) forgetPatch(call tools.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.patched, refOf(call))
}
