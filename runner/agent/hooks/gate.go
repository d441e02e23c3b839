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

// After asks the hooks about the result of a call, and returns the result for the model. It asks the job's hooks
// first, so that the operator's hooks see what the model gets. Hooks see the complete output, which completeOutput
// returns. mayReadComplete is false if a hook refused or replaced the output: then the model must not read the complete
// output either.
func (h *Hooks) After(ctx context.Context, tool string, call tools.Call, result tools.Result, completeOutput func() (string, error)) (reviewed tools.Result, mayReadComplete bool) {
	defer h.forgetPatch(call)
	all := h.forEvent(job.OnPostToolUse)
	if len(all) == 0 {
		return result, true
	}
	operators := OperatorHooks(all) // the first ones in all
	jobs := all[len(operators):]
	complete, err := completeOutput()
	if err != nil {
		firstAsked := slices.Concat(jobs, operators)[0]
		return withholdResult(result, firstAsked.failureText(err)), false
	}
	review := resultReview{result: result, shown: result, allowed: true}
	review.shown.Output = complete
	h.askAfter(ctx, jobs, tool, call, &review)
	h.askAfter(ctx, operators, tool, call, &review)
	return review.result, review.allowed
}

// resultReview is the result of a call while hooks review it.
type resultReview struct {
	result  tools.Result // for the model, with the possibly shortened output
	shown   tools.Result // for hooks, with the complete output
	allowed bool         // no hook refused or replaced the output
}

// withhold replaces the output by a text that says why.
func (r *resultReview) withhold(text string) {
	*r = resultReview{result: withholdResult(r.result, text), shown: withholdResult(r.shown, text)}
}

// askAfter asks a group of hooks about a result until one refuses, and applies their replies to the review.
func (h *Hooks) askAfter(ctx context.Context, group []Hook, tool string, call tools.Call, review *resultReview) {
	for _, hook := range group {
		for _, claude := range h.resultQuestions(hook, tool, call) {
			about := claude.questionInput(call)
			about["tool_response"] = claude.toolResponse(review.shown)
			r, err := h.ask(ctx, hook, question{call: refOf(call), eventInput: about, replaceable: review.result.Output})
			if err != nil {
				review.withhold(hook.failureText(err))
				return
			}
			review.result, review.shown = hook.applyReply(review.result, r), hook.applyReply(review.shown, r)
			if r.withholds() || r.output != nil {
				review.allowed = false
			}
			if r.withholds() {
				return
			}
		}
	}
}

// resultQuestions returns the calls that a hook is asked about after a call: the patches that it applied, and the call
// itself, as far as they match the hook.
func (h *Hooks) resultQuestions(hook Hook, tool string, call tools.Call) (all []claudeCall) {
	h.mu.Lock()
	all = slices.DeleteFunc(slices.Clone(h.patchesByCall[refOf(call)]), func(claude claudeCall) bool { return !hook.matchesPatch(claude) })
	h.mu.Unlock()
	if hook.matches(tool, call) {
		all = append(all, h.toClaudeCall(tool, call))
	}
	return all
}

// applyReply returns the result after a hook's reply. A failed hook, or one that ends the run, replaces the output by
// its reason. Any other refusal appends its reason to the output.
func (h Hook) applyReply(result tools.Result, r reply) tools.Result {
	switch {
	case r.failed() && !r.Continued:
		return withholdResult(result, "The output is withheld: the hook "+h.Name+", which has to agree, did not answer cleanly: "+shorten(r.Reason)+". The call itself was run.")
	case r.Stop:
		return withholdResult(result, "The output is withheld by the hook "+h.Name+": "+sentence(r.Reason)+" The call itself was run.")
	case r.output != nil:
		failed := result.Failed
		result = withholdResult(result, *r.output)
		result.Failed = failed
	}
	if r.refuses() {
		result = appendText(result, "The hook "+h.Name+" says of this: "+sentence(r.Reason))
	}
	if r.Context != "" {
		result = appendText(result, h.addedContext(r))
	}
	return result
}

// withholdResult returns the result with text instead of its output and images, marked as failed.
func withholdResult(result tools.Result, text string) tools.Result {
	result.Output, result.Images, result.Failed = text, nil, true
	return result
}

// appendText returns the result with line at the end of its output.
func appendText(result tools.Result, line string) tools.Result {
	result.Output = strings.TrimSuffix(result.Output, "\n") + "\n" + line + "\n"
	return result
}

// ReviewPatch asks the hooks whether a patch of any tool may be applied. The paths of its edits are relative to the
// working directory, diff is a unified diff. refusal tells the model why not, and is "" if it may be applied. added is
// text from the hooks for the model.
func (h *Hooks) ReviewPatch(ctx context.Context, edits []tree.Edit, diff string) (refusal, added string) {
	call, _ := tools.CallOf(ctx)
	calls := h.patchCalls(edits)
	var texts []string
	for _, hook := range h.All {
		for _, input := range h.patchInputs(hook, edits, diff, call, calls) {
			r, err := h.ask(ctx, hook, question{call: refOf(call), eventInput: input})
			switch {
			case err != nil:
				return hook.failureText(err), ""
			case r.refuses():
				return hook.refusalText(r), ""
			case r.Context != "":
				texts = append(texts, hook.addedContext(r)+"\n")
			}
		}
	}
	// Hooks on results see the call of an edit tool anyway. Remember the patch of any other tool, such as a command, for them.
	isEditTool := dialect.Is(tools.OwnToolNamed(call.Name), dialect.Edits)
	if h.HasOutputHooks() && !isEditTool {
		h.rememberPatch(call, calls)
	}
	return "", strings.Join(texts, "")
}

// patchInputs returns the inputs of the questions that a hook is asked about a patch. It returns none if the patch does
// not concern the hook. call is the call that makes the patch, calls is the result of patchCalls.
func (h *Hooks) patchInputs(hook Hook, edits []tree.Edit, diff string, call tools.Call, calls []claudeCall) (all []map[string]any) {
	switch hook.Event {
	case job.OnPrePatch:
		files := make([]tree.Change, len(edits)) // with paths relative to the repository's root
		for i, e := range edits {
			files[i] = e.Change
			files[i].Path = path.Join(h.Facts.Path, e.Path)
			if e.MovedFrom != "" {
				files[i].MovedFrom = path.Join(h.Facts.Path, e.MovedFrom)
			}
		}
		return []map[string]any{{"patch": map[string]any{"files": files, "diff": diff}}}
	case job.OnPreToolUse:
		tool := tools.OwnToolNamed(call.Name)
		// Before the call of an edit tool, the hook was asked about the path that the model wrote. A link leads to another path.
		isEditTool := dialect.Is(tool, dialect.Edits)
		askedPath := h.toClaudeCall(tool, call).input["file_path"]
		for _, edit := range calls {
			alreadyAsked := isEditTool && (edit.tool == dialect.ApplyPatch || edit.input["file_path"] == askedPath)
			if !alreadyAsked && hook.matchesPatch(edit) {
				all = append(all, edit.questionInput(call))
			}
		}
	}
	return all
}

// patchCalls converts a patch to the calls that hooks know: Claude Code's Write and Edit calls for each file, then
// Codex's apply_patch call for the whole patch. A moved file is written to its new path and emptied at its old path.
func (h *Hooks) patchCalls(edits []tree.Edit) (all []claudeCall) {
	var wholePatch strings.Builder
	for _, e := range edits {
		if e.Op == v4a.Add || e.MovedFrom != "" {
			all = append(all, claudeCall{dialect.ClaudeWrite, map[string]any{"file_path": h.inWorkDir(e.Path), "content": e.Text}})
		} else {
			all = append(all, claudeCall{dialect.ClaudeEdit, map[string]any{"file_path": h.inWorkDir(e.Path), "old_string": e.Old, "new_string": e.New, "replace_all": false}})
		}
		if e.MovedFrom != "" {
			all = append(all, claudeCall{dialect.ClaudeEdit, map[string]any{"file_path": h.inWorkDir(e.MovedFrom), "old_string": e.Old, "new_string": "", "replace_all": false}})
		}
		wholePatch.WriteString(v4a.Format(e.Op, e.Path, e.MovedFrom, e.Old, e.New))
	}
	return append(all, claudeCall{dialect.ApplyPatch, map[string]any{"command": "*** Begin Patch\n" + wholePatch.String() + "*** End Patch\n"}})
}

// rememberPatch keeps the patch of a call until the hooks are asked about the call's result.
func (h *Hooks) rememberPatch(call tools.Call, edits []claudeCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.patchesByCall == nil {
		h.patchesByCall = map[transcript.CallRef][]claudeCall{}
	}
	h.patchesByCall[refOf(call)] = append(h.patchesByCall[refOf(call)], edits...)
}

// forgetPatch removes the patches of a call that rememberPatch kept.
func (h *Hooks) forgetPatch(call tools.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.patchesByCall, refOf(call))
}
