package history

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Reopen reads the run directory at dir for a resume, with limits set as KEY=VALUE and script, a
// scripted session's path or "". It ensures that nobody else works there. With an error it returns
// the run as far as read. show receives later events.
func Reopen(ctx context.Context, rec *record.Record, dir string, set []string, script string, show func(transcript.Event)) (h *Run, err error) {
	if rec.Directory, err = record.OpenDirectory(dir); err != nil {
		return nil, err
	}
	if err := rec.LockWithRetry(ctx); err != nil {
		return nil, err
	}
	torn, err := rec.Reopen(show)
	if err != nil {
		return nil, workspace.CannotResume("%s", outcome.WithoutFullStop(err)).Because(err)
	}
	if h, err = Read(rec); err != nil {
		return nil, err
	}
	h.TornBytes, h.RaisedLimits, h.Limits = torn, set, h.Job.Limits
	if h.Job.Limits, err = settings.SetLimits(h.Limits, set); err != nil {
		return h, err
	}
	if err := h.MayResumeWithin(workspace.WorkPending(rec.Directory)); err != nil {
		return h, err
	}
	if err := h.RequireSameModelKind(script); err != nil {
		return h, err
	}
	here := rec.RecordedHere(rec.DigestsFolder)
	if !here && rec.Has(record.StateFolder) { // what it says of checkouts would be put into the one here
		return h, foreign("the folder %s in its run directory is not trusted; remove it to resume with the change and the patches that its transcript tells of", record.StateFolder)
	}
	h.Foreign = !here
	if err := rec.RequireUnaltered(ctx, h.Finished, record.PackFile, record.WorkPackFile, record.PatchesFolder); err != nil {
		if ctx.Err() != nil {
			return h, err
		}
		return h, workspace.CannotResume("%s", outcome.WithoutFullStop(err))
	}
	return h, nil
}
