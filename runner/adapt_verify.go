package runner

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

func (r *run) checks() verify.Checks {
	return verify.Checks{Record: r.rec, Sandboxes: r.boxes, Workspace: r.ws(), Job: r.job}
}

func (r *run) setUp(ctx context.Context) error {
	return r.inWorkspace(func(*workspace.Workspace) error { return r.checks().SetUp(ctx) })
}

func (r *run) takeBaseline(ctx context.Context) error {
	return r.inWorkspace(func(*workspace.Workspace) (err error) {
		r.table, err = r.checks().Baseline(ctx)
		r.baseline = r.table.Rows
		return err
	})
}

func (r *run) verify(ctx context.Context, attempt int) error {
	table, err := r.checks().Change(ctx, attempt, r.changes, r.baseline)
	return r.verified(table, err)
}

func (r *run) verified(table transcript.Verify, err error) error {
	if altered := (*verify.AlteredError)(nil); errors.As(err, &altered) {
		r.changes = altered.Now
	}
	if len(table.Rows) > 0 {
		r.table = table
	}
	return err
}

func (r *run) verifiesClean() bool { return r.checks().Clean() }

// giveBack tells the agent which rows are red.
func (r *run) giveBack() error {
	words, err := r.checks().Words(r.table, stoppedWords)
	if err != nil {
		return err
	}
	return r.conversation.Tell(words)
}
