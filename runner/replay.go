package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/audit"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/setup/start"
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
	r := newRunner("", start.Request{Publish: publish.Nowhere, ScriptEngine: o.ScriptEngine}, settings.Inputs{JobFile: o.JobFile}, o.Surroundings)
	r.Record.DigestsFolder = "" // do not store digests: the record's author chose the replay's settings
	defer r.Watch.ShowStatus(ctx, nil)()
	defer r.Record.Close()
	if err := workspace.MakeRunDirectory(r.Record, r.Env.Get, o.Out, "", r.Watch.Show); err != nil {
		return nil, err
	}
	r.Record.ID = original.Started.RunID
	r.Record.SetSecrets(settings.Secrets(r.Env, &original.Job))
	source, err := original.OpenCheckout(ctx, r.Record, o.Dir)
	if source != nil {
		defer source.Close()
	}
	if err != nil {
		return nil, err
	}
	if o.Frozen {
		return original.CheckWithoutRunning(ctx, r.Record, source)
	}
	if original.Foreign {
		const resumes = false
		if err := original.RefuseExcessPermissions(ctx, r.Source, source, resumes); err != nil {
			return nil, err
		}
	}
	defer r.end.close()
	return r.replay(ctx, original, source, treeName)
}

// replay answers with the recorded model, runs the real tools in a fresh tree, and compares the outputs.
func (r *runner) replay(ctx context.Context, original *replay.Original, source *workspace.Workspace, treeName string) (*replay.Result, error) {
	if original.ContinuesPull() {
		return nil, errors.New("the run went on with a pull request, whose change its transcript does not have; it can be replayed with --frozen alone")
	}
	tree, err := original.MakeTree(ctx, r.Record, source, treeName)
	r.end.Workspace = tree
	if err != nil {
		return nil, err
	}
	p, err := r.NewReplayPlace(original, tree)
	if err != nil {
		return nil, err
	}
	err = recoverPanic(ctx, func(ctx context.Context) error { return r.runReplay(ctx, p, original.Run) })
	stop := r.end.outcome(ctx, r.Record, err)
	if err != nil && p.Recording.Answers.NoneUsed() { // no answer was used: this machine lacks something that the run had
		return nil, &outcome.Stop{Outcome: stop.Outcome, Reason: stop.Reason, Message: "The run cannot be replayed here: " + r.Record.Redact(stop.Message), Err: err}
	}
	stop.Message = outcome.ShortenNames(r.Record.Redact(stop.Message))
	w, base := r.end.work, string(tree.Base().Tree)
	if r.end.Agent != nil {
		if err := original.WriteBody(r.Record, tree, r.Publisher(w.Project, tree), r.newProposal(w)); err != nil {
			return nil, err
		}
	}
	result := &replay.Result{Calls: len(p.Recording.Outputs), Replay: audit.Replay{Stop: stop, Base: base, Tree: base, Checks: w.verification.Rows}}
	if !w.change.Empty() {
		result.Tree = string(w.change.Tree)
	}
	r.writeEnd(r.end.runFinished(stop))
	return result, original.Compare(ctx, result, p.Recording, r.Record, tree.Root())
}

// runReplay runs a replay up to its verdict.
func (r *runner) runReplay(ctx context.Context, recorded start.Place, h *history.Run) error {
	return r.runWithTimeLimit(ctx, recorded.Job().Limits, func(limited context.Context) error {
		p, err := r.CompleteReplayPlace(limited, recorded, h)
		if err != nil {
			return err
		}
		rd, err := r.makeReady(limited, p)
		if err != nil {
			return err
		}
		w, err := r.workAndVerify(limited, ctx, rd, 0)
		if err != nil {
			return err
		}
		if err := rd.Hooks.RequireAnswered(); err != nil {
			return err
		}
		_, err = r.judgeWork(limited, w)
		return err
	})
}
