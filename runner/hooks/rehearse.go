package hooks

import (
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

	calls   map[int]tools.Call
	tool    map[int]string
	whole   map[int]string // outputs before a hook of the record replaced them
	refused map[int]bool   // calls that a hook of the record kept from being run
	said    string         // the last words
	told    bool           // of the tools
	view    *transcript.View
}

// Take puts the questions of an event.
func (r *Rehearsal) Take(ctx context.Context, view *transcript.View, e transcript.Event) error {
	r.view = view
	if r.calls == nil {
		r.calls, r.tool, r.refused = map[int]tools.Call{}, map[int]string{}, map[int]bool{}
		r.whole = map[int]string{}
	}
	take := map[transcript.Type]func(context.Context, json.RawMessage) error{
		transcript.TypePolicy: r.begin, transcript.TypeModelRequest: r.request, transcript.TypeModelResponse: r.response,
		transcript.TypeToolStarted: r.started, transcript.TypeToolFinished: r.finished, transcript.TypeCompaction: r.compaction,
		transcript.TypeHook: r.recorded, transcript.TypePublish: r.publish, transcript.TypeRunFinished: r.end,
	}[e.Type]
	if take == nil {
		return ctx.Err()
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

// response asks whether the agent may end, where it speaks and calls nothing.
func (r *Rehearsal) response(ctx context.Context, raw json.RawMessage) error {
	var d transcript.ModelResponse
	if err := json.Unmarshal(raw, &d); err != nil || d.Aside {
		return err
	}
	calls := slices.ContainsFunc(d.Output, func(item json.RawMessage) bool {
		var kind struct{ Type string }
		return json.Unmarshal(item, &kind) == nil && strings.HasSuffix(kind.Type, "_call")
	})
	if r.said = r.view.LastMessage; calls || r.said == "" {
		return nil
	}
	_, err := r.Hooks.Stop(ctx, r.said, true)
	return err
}

func (r *Rehearsal) started(ctx context.Context, raw json.RawMessage) error {
	var d transcript.ToolStarted
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	call := tools.Call{ID: d.CallID, Number: d.Number, Name: d.Tool, Input: d.Input}
	if !strings.HasPrefix(strings.TrimSpace(d.Input), "{") {
		call.Form = tools.Freeform
	}
	r.calls[d.Number], r.tool[d.Number] = call, d.Tool
	if r.Hooks.Before(ctx, d.Tool, call, nil).Refusal != "" {
		return nil
	}
	if p, is := patchOf(d.Tool, call); is {
		r.Hooks.Patching(tools.WithCall(ctx, call), p)
	}
	return nil
}

// patchOf is the patch that a call applies, as far as the call tells: without the files that it
// is for, hunks stand without their lines.
func patchOf(tool string, call tools.Call) (Patch, bool) {
	text := patchText(call)
	if commandTools[tool] {
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

func (r *Rehearsal) finished(ctx context.Context, raw json.RawMessage) error {
	var d transcript.ToolFinished
	if err := json.Unmarshal(raw, &d); err != nil || r.refused[d.Number] {
		return err
	}
	if output, replaced := r.whole[d.Number]; replaced {
		d.Output = output
	}
	r.Hooks.After(ctx, d.Tool, r.calls[d.Number], tools.Result{Output: d.Output, Failed: d.Failed, Detail: d.Detail})
	return nil
}

func (r *Rehearsal) recorded(_ context.Context, raw json.RawMessage) error {
	var d transcript.Hook
	err := json.Unmarshal(raw, &d)
	if err == nil && d.On == job.OnPreTool && (d.Decision == transcript.HookDeny || d.Decision == transcript.HookFailed && !d.WentOn) {
		r.refused[d.Number] = true
	}
	if _, known := r.whole[d.Number]; err == nil && d.Decision == transcript.HookReplace && !known {
		r.whole[d.Number] = d.Before
	}
	return err
}

func (r *Rehearsal) compaction(ctx context.Context, raw json.RawMessage) error {
	var d transcript.Compaction
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
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
