package hooks

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
)

var _ tools.Gate = (*Hooks)(nil)

// mostRewrites is how often hooks may rewrite one call.
const mostRewrites = 8

// Before asks the hooks on calls, until each of them, the operator's first, has seen the input
// that the call is made with.
func (h *Hooks) Before(ctx context.Context, tool string, call tools.Call) (v tools.Verdict) {
	seen, rewrites := map[string]string{}, 0
	var aside []string
	for one, more := h.nextBefore(tool, call, seen); more; one, more = h.nextBefore(tool, call, seen) {
		now := call
		r, err := h.ask(ctx, one, question{
			number: call.Number, own: map[string]any{"call": ownCall(tool, now)}, compat: compatCall(shape(one.Compat, tool, now), now), before: now.Input,
			rewrite: func(by json.RawMessage) (string, error) { return rewrite(one.Compat, tool, now, by) },
		})
		switch {
		case err != nil:
			return tools.Verdict{Refusal: "Not run: the hook " + one.Name + " could not be asked: " + err.Error()}
		case r.refuses():
			return tools.Verdict{Refusal: one.refusal(r), Aside: strings.Join(aside, "\n")}
		case r.input != nil && canonical(r.after) != canonical(call.Input):
			if rewrites++; rewrites > mostRewrites {
				return tools.Verdict{Refusal: "Not run: the hooks of this run rewrite this call again and again. That is a fault of the hooks, not of the call."}
			}
			call.Input = r.after
			input := r.after
			v.Input = &input
			aside = append(aside, "The hook "+one.Name+" rewrote the input of this call: "+cut(input))
		}
		seen[one.Name] = canonical(call.Input)
		if words := "The hook " + one.Name + " adds: " + r.context; r.context != "" && !slices.Contains(aside, words) {
			aside = append(aside, words)
		}
	}
	v.Aside = strings.Join(aside, "\n")
	return v
}

// nextBefore is the next hook to ask of a call; seen has the input that each saw last.
func (h *Hooks) nextBefore(tool string, call tools.Call, seen map[string]string) (one Hook, more bool) {
	for _, one := range h.on(job.OnPreTool) {
		if input, asked := seen[one.Name]; asked && input == canonical(call.Input) {
			continue
		}
		if one.Compat == job.CompatClaude && tool == applyPatch {
			continue // of a patch it is asked by files, once these are known
		}
		if one.concerns(tool, call, names(one.Compat, tool, shape(one.Compat, tool, call))...) {
			return one, true
		}
	}
	return one, false
}

// canonical is an input in one form, of those that mean the same.
func canonical(input string) string {
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(input))
	d.UseNumber()
	if d.Decode(&object) != nil || d.More() {
		return input
	}
	text, err := json.Marshal(object)
	if err != nil {
		return input
	}
	return string(text)
}

// After asks the hooks on what came of calls: those of the job up to the first that refuses, then
// those of the operator, which see what the model would get. The whole of an output, which hooks
// see in the place of its ends, goes to the model where none of them withholds or replaces it.
func (h *Hooks) After(ctx context.Context, tool string, call tools.Call, result tools.Result, whole func() (string, error)) (tools.Result, bool) {
	all := h.on(job.OnPostTool)
	operators := Operators(all)
	seen := outcomeOf{result, result.Output, whole, true}
	for _, some := range [][]Hook{all[len(operators):], operators} {
		seen = h.after(ctx, some, tool, call, seen)
	}
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

// resultQuestions are what a hook is asked of a result: one question, or one for each file of a
// patch.
func (h *Hooks) resultQuestions(one Hook, tool string, call tools.Call, result tools.Result) []question {
	if one.Compat == job.CompatClaude && tool == applyPatch {
		return h.patchedFiles(one, call, result)
	}
	as := shape(one.Compat, tool, call)
	if !one.concerns(tool, call, names(one.Compat, tool, as)...) {
		return nil
	}
	own, compat := ownCall(tool, call), compatCall(as, call)
	own["output"], own["failed"] = result.Output, result.Failed
	compat["tool_response"] = response(one.Compat, as, result)
	return []question{{number: call.Number, own: map[string]any{"call": own}, compat: compat, before: result.Output}}
}

// patchedFiles asks a hook of Claude Code's form of each file that a patch changed.
func (h *Hooks) patchedFiles(one Hook, call tools.Call, result tools.Result) (all []question) {
	var detail struct {
		Files []struct{ Op, Path string }
	}
	raw, err := json.Marshal(result.Detail)
	if err != nil || json.Unmarshal(raw, &detail) != nil || result.Failed || !one.asksOfFiles() {
		return nil
	}
	for _, file := range detail.Files {
		name := map[string]string{"A": "Write"}[file.Op]
		if name == "" {
			name = "Edit"
		}
		if !one.concerns(applyPatch, call, applyPatch, name) {
			continue
		}
		where := filepath.Join(h.Facts.WorkDir, filepath.FromSlash(file.Path))
		compat := compatCall(shaped{name, map[string]any{"file_path": where}}, call)
		compat["tool_response"] = map[string]any{"filePath": where, "success": true}
		all = append(all, question{number: call.Number, compat: compat, before: result.Output})
	}
	return all
}

// judged is a result as a hook leaves it. A refusal keeps it from the model; in the form of the
// others the reason goes there beside it.
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

// Patching asks of a patch, however it came: the hooks on patches, and those of Claude Code's
// form on calls, by files. Refusal says why it is not applied; empty: it may be. Aside is for the
// model.
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
	return "", strings.Join(words, "")
}

// hookQuestion is a question for one hook.
type hookQuestion struct {
	hook     Hook
	question question
}

func (h *Hooks) patchQuestions(p Patch, call tools.Call) (all []hookQuestion) {
	files := []patched{}
	for _, e := range h.edits(p) {
		files = append(files, patched{letters[e.Op], e.Path, e.MovedFrom, e.Added, e.Removed})
	}
	for _, one := range h.on(job.OnPrePatch) {
		own := map[string]any{"number": call.Number, "files": files, "diff": p.Diff}
		all = append(all, hookQuestion{one, question{number: call.Number, own: map[string]any{"patch": own}}})
	}
	for _, one := range h.on(job.OnPreTool) {
		for _, as := range h.claudeEdits(p) {
			if one.asksOfFiles() && one.concerns(applyPatch, call, applyPatch, as.Tool) {
				all = append(all, hookQuestion{one, question{number: call.Number, compat: compatCall(as, call)}})
			}
		}
	}
	return all
}

// edits are those of a patch with paths below the root of the repository.
func (h *Hooks) edits(p Patch) []tree.Edit {
	all := append([]tree.Edit(nil), p.Edits...)
	for i := range all {
		all[i].Path = path.Join(h.Facts.Path, all[i].Path)
		if all[i].MovedFrom != "" {
			all[i].MovedFrom = path.Join(h.Facts.Path, all[i].MovedFrom)
		}
	}
	return all
}

// claudeEdits are the files of a patch as Claude Code would have changed them. A file that moves
// is written in one place, and edited away in the other.
func (h *Hooks) claudeEdits(p Patch) (all []shaped) {
	for _, e := range p.Edits {
		where := func(name string) string { return filepath.Join(h.Facts.WorkDir, filepath.FromSlash(name)) }
		if e.Op == v4a.Add || e.MovedFrom != "" {
			all = append(all, shaped{"Write", map[string]any{"file_path": where(e.Path), "content": e.Text}})
		} else {
			all = append(all, shaped{"Edit", map[string]any{"file_path": where(e.Path), "old_string": e.Old, "new_string": e.New, "replace_all": false}})
		}
		if e.MovedFrom != "" {
			all = append(all, shaped{"Edit", map[string]any{"file_path": where(e.MovedFrom), "old_string": e.Old, "new_string": "", "replace_all": false}})
		}
	}
	return all
}
