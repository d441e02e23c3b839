package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// Rehearsal puts to hooks what a recorded run would have asked them. It is used by one goroutine.
type Rehearsal struct {
	Hooks *Hooks
	// Body and Diff are the pull request and the patch that the run made; empty for none.
	Body, Diff string
	// Read gives a file of the run directory.
	Read func(name string) ([]byte, error)
	// Unknown are calls whose output hooks are not asked of: they saw more of it than is on
	// record, since one of them withheld or replaced it.
	Unknown []transcript.CallRef

	calls   map[transcript.CallRef]tools.Call
	whole   map[transcript.CallRef]string   // outputs before a hook of the record withheld or replaced them
	behind  map[transcript.CallRef][]string // what hooks of the record put behind outputs
	refused map[transcript.CallRef]bool     // calls that a hook of the record refused, or the patch of
	said    string                          // the last words
	ended   bool                            // the agent had said them, and hooks were not asked yet
	told    bool                            // of the tools
	view    *transcript.View
}

// Take puts the questions of an event.
func (r *Rehearsal) Take(ctx context.Context, view *transcript.View, e transcript.Event) error {
	r.view = view
	if e.By() != "" { // of agents that it started the record alone tells
		return ctx.Err()
	}
	if r.calls == nil {
		r.calls, r.refused, r.whole, r.behind = map[transcript.CallRef]tools.Call{}, map[transcript.CallRef]bool{}, map[transcript.CallRef]string{}, map[transcript.CallRef][]string{}
	}
	take := map[transcript.Type]func(context.Context, json.RawMessage) error{
		transcript.TypePolicy: r.begin, transcript.TypeModelRequest: r.request, transcript.TypeModelResponse: r.response,
		transcript.TypeToolStarted: r.started, transcript.TypeToolFinished: r.finished, transcript.TypeCompaction: r.compaction,
		transcript.TypeHook: r.recorded, transcript.TypePublish: r.publish, transcript.TypeRunFinished: r.end,
	}[e.Type]
	if take == nil {
		return ctx.Err()
	}
	if e.Type != transcript.TypeHook { // those of the record follow the words
		r.stop(ctx, e.Type == transcript.TypeModelRequest)
	}
	if err := take(ctx, e.Data); err != nil && ctx.Err() != nil {
		return ctx.Err()
	} // else a hook refuses, which is on record
	return nil
}

func (r *Rehearsal) begin(ctx context.Context, _ json.RawMessage) error {
	t, w := r.view.Task, r.view.Workspace
	_, err := r.Hooks.RunStart(ctx, Start{Source: t.Source, Title: t.Title, Text: t.Text, URL: t.URL, Base: w.Base, SHA: w.BaseSHA, Branch: w.Branch})
	return err
}

// request asks of the definitions of tools in the first request, and of variables.
func (r *Rehearsal) request(ctx context.Context, raw json.RawMessage) error {
	if r.told {
		return nil
	}
	r.told = true
	var d struct {
		Settings struct {
			Tools []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"tools"`
		} `json:"settings"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	var specs []tools.Spec
	for _, tool := range d.Settings.Tools {
		if tool.Name != "" {
			specs = append(specs, tools.Spec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
		}
	}
	if _, err := r.Hooks.Env(ctx, func(string, string) string { return "" }); err != nil {
		return err
	}
	_, err := r.Hooks.Definitions(ctx, specs)
	return err
}

// response notes that the agent ended, where it speaks and calls nothing.
func (r *Rehearsal) response(_ context.Context, raw json.RawMessage) error {
	var d transcript.ModelResponse
	if err := json.Unmarshal(raw, &d); err != nil || d.Aside {
		return err
	}
	calls := slices.ContainsFunc(d.Output, func(item json.RawMessage) bool {
		var kind struct {
			Type   string
			CallID string `json:"call_id"`
		}
		return json.Unmarshal(item, &kind) == nil && kind.CallID != "" && strings.HasSuffix(kind.Type, "_call")
	})
	r.said = r.view.LastMessage
	r.ended = !calls && r.said != ""
	return nil
}

// stop asks whether the agent may end, once the record tells whether it went on after that.
func (r *Rehearsal) stop(ctx context.Context, wentOn bool) {
	if r.ended {
		r.ended = false
		_, _ = r.Hooks.Stop(ctx, r.said, wentOn) // who refuses is on record
	}
}

func (r *Rehearsal) started(ctx context.Context, raw json.RawMessage) error {
	var d transcript.ToolStarted
	if err := json.Unmarshal(raw, &d); err != nil || d.Refused {
		return err
	}
	call := tools.Call{ID: d.CallID, Number: d.Number, Caller: d.Caller, Name: d.Tool, Input: cmp.Or(d.Ready, d.Input)}
	if !strings.HasPrefix(strings.TrimSpace(call.Input), "{") {
		call.Form = tools.Freeform
	}
	if d.Tool == "shell" {
		call.Form = shellForm(call.Input)
	}
	r.calls[d.Ref()] = call
	r.Hooks.Before(ctx, d.Tool, call, nil)
	return nil
}

// patchOf is the patch that a call applies, as far as the call tells: without the files that it
// is for, hunks stand without their lines. changed are the files that it changed; none where it was
// refused.
func (h *Hooks) patchOf(tool string, call tools.Call, changed []changedFile) (Patch, bool) {
	if tools.Edits(tool) {
		return editIn(call, changed)
	}
	text := patchText(call)
	if alone := h.patchesIn(tool, call); len(alone) == 1 {
		text = alone[0]
	} else if tools.RunsCommands(tool) {
		command := commandText(tool, call)
		from, to := strings.Index(command, "*** Begin Patch"), strings.Index(command, "*** End Patch")
		if from < 0 || to < from || !strings.Contains(command[:from], applyPatch) && !strings.Contains(command[:from], "applypatch") {
			return Patch{}, false
		}
		text = command[from:to] + "*** End Patch\n"
	} else if tool != applyPatch {
		return Patch{}, false
	}
	parsed, err := v4a.Parse(text)
	if err != nil {
		return Patch{}, false
	}
	p := Patch{Diff: text}
	for _, s := range parsed.Sections {
		p.Edits = append(p.Edits, editOf(s))
	}
	return p, true
}

// editIn is what a call of edit or write changes.
func editIn(call tools.Call, changed []changedFile) (Patch, bool) {
	var a struct {
		Path    string `json:"filePath"`
		Old     string `json:"oldString"`
		New     string `json:"newString"`
		Content string `json:"content"`
	}
	if err := call.Arguments(&a); err != nil {
		return Patch{}, false
	}
	e := editOf(v4a.Replacing(a.Path, a.Old, a.New+a.Content))
	e.Text = a.New + a.Content
	if len(changed) == 1 {
		e.Path = changed[0].Path
	}
	if len(changed) == 1 && changed[0].Op == letters[v4a.Add] {
		e.Op = v4a.Add
	}
	return Patch{Edits: []tree.Edit{e}, Diff: "--- " + e.Path + "\n+++ " + e.Path + "\n" + marked("-", e.Old) + marked("+", e.New)}, true
}

// marked are lines with a mark in front of each.
func marked(mark, text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(mark + l)
	}
	return b.String()
}

func editOf(s v4a.Section) tree.Edit {
	e := tree.Edit{Change: tree.Change{Path: s.Path, Op: s.Op}, Text: s.Content, New: s.Content}
	if s.MoveTo != "" {
		e.Path, e.MovedFrom = s.MoveTo, s.Path
	}
	for _, hunk := range s.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case v4a.Insert:
				e.New, e.Added = e.New+line.Text+"\n", e.Added+1
			case v4a.Remove:
				e.Old, e.Removed = e.Old+line.Text+"\n", e.Removed+1
			}
		}
	}
	return e
}

// finished asks of a patch that fitted, and of what a call gave that was run.
func (r *Rehearsal) finished(ctx context.Context, raw json.RawMessage) error {
	var d transcript.ToolFinished
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	call, asked := r.calls[d.Ref()]
	if !asked || d.NotRun {
		return nil
	}
	call.Input = cmp.Or(d.Made, call.Input)
	fitted := d.Detail["files"] != nil || r.refused[d.Ref()] || tools.RunsCommands(d.Tool) && !d.Failed
	if p, is := r.Hooks.patchOf(d.Tool, call, filesOf(d.Detail)); is && fitted {
		r.Hooks.Patching(tools.WithCall(ctx, call), p)
	}
	whole := func() (string, error) { return d.Output, nil }
	switch output, withheld := r.whole[d.Ref()]; {
	case withheld && d.Truncated:
		r.Unknown = append(r.Unknown, d.Ref())
		return nil
	case withheld:
		d.Output = output
	default:
		for _, words := range slices.Backward(r.behind[d.Ref()]) {
			d.Output = strings.TrimSuffix(d.Output, words+"\n")
		}
		whole = func() (string, error) { return r.wholeOf(d), nil }
	}
	r.Hooks.After(ctx, d.Tool, call, tools.Result{Output: d.Output, Failed: d.Failed, Detail: d.Detail}, whole)
	return nil
}

// wholeOf is an output with its file in the place of its ends, where there is one.
func (r *Rehearsal) wholeOf(d transcript.ToolFinished) string {
	at := strings.Index(d.Output, tools.CutWarning)
	if d.File == "" || at < 0 || r.Read == nil {
		return d.Output
	}
	text, err := r.Read(d.File)
	if err != nil {
		return d.Output
	}
	return d.Output[:at] + string(text)
}

// recorded notes what a hook of the record made of a call.
func (r *Rehearsal) recorded(_ context.Context, raw json.RawMessage) error {
	var d transcript.Hook
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	switch {
	case d.On == job.OnPreTool || d.On == job.OnPrePatch:
		refuses := d.Decision == transcript.HookDeny || d.Decision == transcript.HookFailed && !d.WentOn
		r.refused[d.Ref()] = r.refused[d.Ref()] || refuses
	case d.On != job.OnPostTool:
	case d.Before != "":
		if _, known := r.whole[d.Ref()]; !known {
			r.whole[d.Ref()] = d.Before
		}
	default:
		r.behind[d.Ref()] = append(r.behind[d.Ref()],
			"The hook "+d.Name+" says of this: "+sentence(d.Reason), "The hook "+d.Name+" adds: "+d.Context)
	}
	return nil
}

func (r *Rehearsal) compaction(ctx context.Context, raw json.RawMessage) error {
	var d transcript.Compaction
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	if d.Reason == transcript.Refused { // no run asks then
		return nil
	}
	return r.Hooks.Compacting(ctx, d.Reason)
}

// publish asks of the draft once, when its commit is made.
func (r *Rehearsal) publish(ctx context.Context, raw json.RawMessage) error {
	var d transcript.Publish
	if err := json.Unmarshal(raw, &d); err != nil || d.Step != "commit" {
		return err
	}
	w := r.view.Workspace
	draft := Draft{Base: w.Base, BaseSHA: w.BaseSHA, Branch: w.Branch, To: r.view.Started.Publish, As: "pull_request", Title: r.view.Task.Title, Body: r.Body, Diff: r.Diff}
	if change := r.view.Change; change != nil {
		for _, file := range change.Files {
			draft.Files = append(draft.Files, file.Path)
		}
	}
	return r.Hooks.Publishing(ctx, draft)
}

func (r *Rehearsal) end(ctx context.Context, raw json.RawMessage) error {
	var d transcript.RunFinished
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	return r.Hooks.RunEnd(ctx, End{Outcome: d.Outcome, Reason: d.Reason, Message: d.Message, ExitCode: d.ExitCode})
}
