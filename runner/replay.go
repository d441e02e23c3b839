package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/audit"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ReplayOptions names the run to replay and the folders to use.
type ReplayOptions struct {
	RunDir string
	// Dir is a checkout with the base commit. "" means the run's own checkout. For a run recorded on
	// another machine, it means the current folder.
	Dir string
	// JobFile is the job of a run recorded on another machine; optional.
	JobFile string
	Out     string // run directory to keep; empty means a temporary one
	Frozen  bool   // replay tool outputs too; run no tool

	Surroundings
}

// Replay replays a model's recorded answers offline, with the real tools in a fresh tree of the base
// commit. It reports tool outputs that differ. Frozen runs nothing and verifies the record: its events
// must yield the sent requests, and its objects the change.
func Replay(ctx context.Context, o ReplayOptions) (*replay.Result, error) {
	original, err := replay.Open(o.RunDir, o.Environ)
	if err != nil {
		return nil, err
	}
	defer original.Record.Close()
	treeName := "the replay's tree"
	if o.Out == "" {
		treeName = publish.GoneTree
		if o.Out, err = os.MkdirTemp("", "agent-ci-replay-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		defer sandbox.RemoveScratch(o.Out)
	}
	r := newRunner("", settings.Inputs{JobFile: o.JobFile}, o.Surroundings)
	r.rec.DigestsFolder = "" // do not store digests: the record's author chose the replay's settings
	defer r.watch.ShowStatus(ctx, nil)()
	defer r.rec.Close()
	if err := workspace.MakeRunDirectory(r.rec, r.env.Get, o.Out, "", r.watch.Show); err != nil {
		return nil, err
	}
	r.rec.ID = original.Started.RunID
	r.rec.SetSecrets(settings.Secrets(r.env, &original.Job))
	source, err := original.Checkout(ctx, r.rec, o.Dir)
	if source != nil {
		defer source.Close()
	}
	if err != nil {
		return nil, err
	}
	if o.Frozen {
		return original.CheckFrozen(ctx, r.rec, source)
	}
	if original.Foreign {
		if err := original.RefuseExcess(ctx, r.source, source, false); err != nil {
			return nil, err
		}
	}
	defer r.end.close()
	defer func() {
		if r.end.sandboxes != nil { // a replay is never resumed
			_ = r.end.sandboxes.RemoveTreeAtEnd()
		}
	}()
	return r.replay(ctx, original, source, treeName, o.ScriptEngine)
}

// replay answers with the recorded model, runs the real tools in a fresh tree, and compares the outputs.
func (r *runner) replay(ctx context.Context, original *replay.Original, source *workspace.Workspace, treeName string, engine []string) (*replay.Result, error) {
	if original.ContinuesPull() {
		return nil, errors.New("the run went on with a pull request, whose change its transcript does not have; it can be replayed with --frozen alone")
	}
	tree, err := original.Tree(ctx, r.rec, source, treeName)
	r.end.workspace = tree
	if err != nil {
		return nil, err
	}
	req := &request{publish: publish.Nowhere, program: program{engine: engine}}
	if req.recording, err = original.Read(r.rec, tree); err == nil {
		req.program.tools, err = extensions.ReplayEmbedded(original.Record.Directory, req.recording.RecordedCalls())
	}
	if err != nil {
		return nil, err
	}
	replayPlace := place{assignment: recordedAssignment(original.Run, req), workspace: tree}
	replayPlace.project.Mode = publish.Nowhere
	if replayPlace.skills, err = skills.ReadOffer(original.Record.Directory, original.Skills); err != nil {
		return nil, err
	}
	r.registerPlace(replayPlace)
	err = recoverPanic(ctx, func(ctx context.Context) error { return r.runReplay(ctx, replayPlace, original.Run) })
	stop := r.end.outcome(ctx, r.rec, err)
	if err != nil && req.recording.Answers.NoneUsed() { // no answer was used: this machine lacks something that the run had
		return nil, &outcome.Stop{Outcome: stop.Outcome, Reason: stop.Reason, Message: "The run cannot be replayed here: " + r.rec.Redact(stop.Message), Err: err}
	}
	stop.Message = outcome.ShortenNames(r.rec.Redact(stop.Message))
	if r.end.agent != nil {
		w := r.end.work
		if err := original.WriteBody(r.rec, tree, r.publisher(w.project, tree), r.proposal(w)); err != nil {
			return nil, err
		}
	}
	result := r.replayResult(stop, tree, len(req.recording.Outputs))
	r.conclude(r.end.runFinished(stop))
	return result, original.Compare(ctx, result, req.recording, r.rec, tree.Root())
}

// replayResult returns the result of a replay, before it is compared with the original run.
func (r *runner) replayResult(stop *outcome.Stop, tree *workspace.Workspace, calls int) *replay.Result {
	w, base := r.end.work, string(tree.Base().Tree)
	result := &replay.Result{Calls: calls, Replay: audit.Replay{Stop: stop, Base: base, Tree: base, Checks: w.verification.Rows}}
	if !w.change.Empty() {
		result.Tree = string(w.change.Tree)
	}
	return result
}

// runReplay runs a replay up to its verdict.
func (r *runner) runReplay(ctx context.Context, recordedPlace place, h *history.Run) error {
	return r.inTime(ctx, recordedPlace.job().Limits, func(limited context.Context) (err error) {
		a := *recordedPlace.assignment
		if a.model, err = a.recording.Answers.Model(a.job(), r.rec.Warn); err != nil {
			return err
		}
		if a.project, err = r.recordedProject(&a, h); err != nil {
			return err
		}
		recordedPlace.assignment = &a
		p, err := r.recall(limited, recordedPlace, proposals.Recorded(r.rec, h.View).ForReplay())
		if err != nil {
			return err
		}
		rd, err := r.makeReady(limited, p)
		if err != nil {
			return err
		}
		w, err := r.work(limited, ctx, rd, 0)
		if err != nil {
			return err
		}
		if err := rd.hooks.RequireAnswered(); err != nil {
			return err
		}
		_, err = r.judge(limited, w)
		return err
	})
}
