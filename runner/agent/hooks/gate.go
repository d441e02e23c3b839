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
)

var _ tools.Gate = (*Hooks)(nil)

// After asks the hooks on what came of calls: those of the job up to the first that refuses, then
// those of the operator, which see what the model would get. The whole of an output, which hooks
// see in the place of its ends, goes to the model where none of them withholds or replaces it.
func (h *Hooks) After(ctx context.Context, tool string, call tools.Call, result tools.Result, whole func() (string, error)) (tools.Result, bool) {
	all := h.on(job.OnPostToolUse)
	operators := Operators(all)
	seen := outcomeOf{result, result.Output, whole, true}
	for _, some := range [][]Hook{all[len(operators):], operators} {
		seen = h.after(ctx, some, tool, call, seen)
	}
	h.forget(call)
	return seen.result, seen.let
}

// outcomeOf a call is what the model would get, and whether it may have the whole output.
type outcomeOf struct {
	result tools.Result
	cut    string // the output before hooks said anything of it
	whole  func() (string, error)
	let    bool
}

// shown is the result for a hook.
func (o outcomeOf) shown() (tools.Result, error) {
	if !o.let {
		return o.result, nil
	}
	text, err := o.whole()
	shown := o.result
	shown.Output = strings.TrimSuffix(text, "\n") + strings.TrimPrefix(o.result.Output, strings.TrimSuffix(o.cut, "\n"))
	return shown, err
}

// after asks some hooks up to the first that refuses.
func (h *Hooks) after(ctx context.Context, some []Hook, tool string, call tools.Call, seen outcomeOf) outcomeOf {
	for _, one := range some {
		shown, err := seen.shown()
		if err != nil {
			return seen.withheld("The output is withheld: the hook " + one.Name + " could not be asked: " + err.Error())
		}
		for _, q := range h.resultQuestions(one, tool, call, shown) {
			q.before = seen.result.Output
			r, err := h.ask(ctx, one, q)
			if err != nil {
				return seen.withheld("The output is withheld: the hook " + one.Name + " could not be asked: " + err.Error())
			}
			refused := r.refuses() && !r.feedback
			seen.result, seen.let = one.judged(seen.result, r), seen.let && !refused && r.output == nil
			if refused {
				return seen
			}
		}
	}
	return seen
}

func (o outcomeOf) withheld(words string) outcomeOf {
	return outcomeOf{result: withheld(o.result, words)}
}

// resultQuestions are what a hook is asked of a result: of the call, and of each patch that a
// command applied, or each of its files.
func (h *Hooks) resultQuestions(one Hook, tool string, call tools.Call, result tools.Result) (all []question) {
	for _, as := range h.edited(call) {
		if one.ofFile(as) {
			all = append(all, as.result(call, result))
		}
	}
	for _, a := range h.aspects(one, tool, call) {
		all = append(all, a.as.result(call, result))
	}
	return all
}

// result returns what a hook is asked of the result of a call.
func (as shaped) result(call tools.Call, result tools.Result) question {
	about := as.about(call)
	about["tool_response"] = as.response(result)
	return question{of: refOf(call), about: about}
}

// judged returns a result as a hook leaves it. One that fails, or ends the run, keeps it from the model;
// the reason of one that blocks goes there beside it.
func (one Hook) judged(result tools.Result, r reply) tools.Result {
	switch {
	case r.failed != "" && !r.wentOn:
		return withheld(result, "The output is withheld: the hook "+one.Name+", which has to agree, did not answer cleanly: "+cut(r.failed)+". The call itself was run.")
	case r.refuses() && !r.feedback:
		return withheld(result, "The output is withheld by the hook "+one.Name+": "+sentence(r.words())+" The call itself was run.")
	case r.output != nil:
		failed := result.Failed
		result = withheld(result, *r.output)
		result.Failed = failed
	}
	if r.feedback {
		result = behind(result, "The hook "+one.Name+" says of this: "+sentence(r.words()))
	}
	if r.context != "" {
		result = behind(result, "The hook "+one.Name+" adds: "+r.context)
	}
	return result
}

// withheld has words in the place of all that the model would get.
func withheld(result tools.Result, words string) tools.Result {
	commands := make([]tools.Ran, len(result.Commands))
	for i, ran := range result.Commands {
		ran.Output = ""
		if i == 0 {
			ran.Output = words
		}
		commands[i] = ran
	}
	result.Output, result.Images, result.Failed = words, nil, true
	if len(commands) > 0 {
		result.Commands = commands
	}
	return result
}

// behind has words behind the output.
func behind(result tools.Result, words string) tools.Result {
	add := func(output string) string { return strings.TrimSuffix(output, "\n") + "\n" + words + "\n" }
	if last := len(result.Commands) - 1; last >= 0 {
		commands := append([]tools.Ran(nil), result.Commands...)
		commands[last].Output = add(commands[last].Output)
		result.Commands = commands
	}
	result.Output = add(result.Output)
	return result
}

// Patch is a patch that is about to be applied.
type Patch struct {
	Edits []tree.Edit // paths are below the working directory
	Diff  string      // unified
}

// patched is a file of a patch for a hook. Paths are below the root of the repository.
type patched struct {
	Op      string `json:"op"` // A, M, D
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // of a file that moved
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

var letters = map[v4a.Op]string{v4a.Add: "A", v4a.Update: "M", v4a.Delete: "D"}

// Patching asks of a patch, however it came: the hooks on patches, and those on edits, by files. Refusal
// says why it is not applied; empty: it may be. Aside is for the model.
func (h *Hooks) Patching(ctx context.Context, p Patch) (refusal, aside string) {
	call, _ := tools.CallOf(ctx)
	var words []string
	for _, each := range h.patchQuestions(p, call) {
		r, err := h.ask(ctx, each.hook, each.question)
		switch {
		case err != nil:
			return "the hook " + each.hook.Name + " could not be asked: " + err.Error(), ""
		case r.refuses():
			return each.hook.refusal(r), ""
		case r.context != "":
			words = append(words, "The hook "+each.hook.Name+" adds: "+r.context+"\n")
		}
	}
	if !tools.Edits(tools.Taken(call.Name)) {
		h.remember(call, p)
	}
	return "", strings.Join(words, "")
}

// hookQuestion is a question for one hook.
type hookQuestion struct {
	hook     Hook
	question question
}

func (h *Hooks) patchQuestions(p Patch, call tools.Call) (all []hookQuestion) {
	files := []patched{}
	for _, e := range p.Edits {
		file := patched{Op: letters[e.Op], Path: path.Join(h.Facts.Path, e.Path), Added: e.Added, Removed: e.Removed}
		if e.MovedFrom != "" {
			file.From = path.Join(h.Facts.Path, e.MovedFrom)
		}
		files = append(files, file)
	}
	for _, one := range h.on(job.OnPrePatch) {
		all = append(all, hookQuestion{one, question{of: refOf(call), about: map[string]any{"patch": map[string]any{"files": files, "diff": p.Diff}}}})
	}
	var asked any // the path with which hooks were asked of the call itself; links may lead elsewhere
	if tool := tools.Taken(call.Name); tools.Edits(tool) {
		asked = h.shape(tool, call).Input["file_path"]
	}
	for _, one := range h.on(job.OnPreToolUse) {
		for _, as := range h.claudeEdits(p) {
			if as.Input["file_path"] != asked && one.ofFile(as) {
				all = append(all, hookQuestion{one, question{of: refOf(call), about: as.about(call)}})
			}
		}
	}
	return all
}

// claudeEdits are the files of a patch as Claude Code would have changed them. A file that moves
// is written in one place, and edited away in the other.
func (h *Hooks) claudeEdits(p Patch) (all []shaped) {
	for _, e := range p.Edits {
		if e.Op == v4a.Add || e.MovedFrom != "" {
			all = append(all, shaped{"Write", map[string]any{"file_path": h.inWorkDir(e.Path), "content": e.Text}})
		} else {
			all = append(all, shaped{"Edit", map[string]any{"file_path": h.inWorkDir(e.Path), "old_string": e.Old, "new_string": e.New, "replace_all": false}})
		}
		if e.MovedFrom != "" {
			all = append(all, shaped{"Edit", map[string]any{"file_path": h.inWorkDir(e.MovedFrom), "old_string": e.Old, "new_string": "", "replace_all": false}})
		}
	}
	return all
}

// remember keeps the texts of a patch for who is asked of its result.
func (h *Hooks) remember(call tools.Call, p Patch) {
	if !slices.ContainsFunc(h.on(job.OnPostToolUse), Hook.byFile) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.texts == nil {
		h.texts = map[transcript.CallRef][]shaped{}
	}
	h.texts[refOf(call)] = append(h.texts[refOf(call)], h.claudeEdits(p)...)
}

func (h *Hooks) edited(call tools.Call) []shaped {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.texts[refOf(call)]
}

func (h *Hooks) forget(call tools.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.texts, refOf(call))
}
