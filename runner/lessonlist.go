package runner

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// LessonStatus is a lesson whose evidence is gone.
type LessonStatus struct {
	ID   string   `json:"id"`
	Gone []string `json:"gone"` // evidence that is not there any more
}

// LessonsGone are the lessons of the base commit of a checkout whose evidence is gone: a path that
// it does not have any more, a check that the job does not have. The problems are those of the
// file, whose lessons no run is told of then.
func LessonsGone(ctx context.Context, o Checked) (gone []LessonStatus, problems job.Problems, err error) {
	in := newInvocation("", settings.Given{JobFile: o.JobFile, Set: o.Set}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Quiet: true})
	folder, err := os.MkdirTemp("", "agent-ci-lessons-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer sandbox.RemoveScratch(folder)
	if err := in.rec.Make(folder, nil); err != nil {
		return nil, nil, err
	}
	defer in.rec.Close()
	ws, err := workspace.Open(ctx, in.rec, workspace.Options{Dir: o.Dir, Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()})
	if err != nil {
		return nil, nil, workspace.CheckoutFailure(err)
	}
	defer ws.Close()
	if err := ws.StartOn(ctx, ""); err != nil {
		return nil, nil, workspace.CheckoutFailure(err)
	}
	set, err := in.source.LoadTemplate(ctx, ws.Commit())
	if err != nil {
		return nil, nil, err
	}
	_, all, err := readLessons(ws)
	if wrong, is := err.(job.Problems); is {
		return nil, wrong, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, l := range all {
		status := LessonStatus{ID: l.ID}
		for _, text := range l.Evidence {
			there, err := evidenceStands(ws.Checkout(), ws.Base(), &set.Job, text)
			if err != nil {
				return nil, nil, err
			}
			if !there {
				status.Gone = append(status.Gone, text)
			}
		}
		if len(status.Gone) > 0 {
			gone = append(gone, status)
		}
	}
	return gone, nil, nil
}

// evidenceStands says whether evidence is still there. Of runs nothing is known.
func evidenceStands(checkout *gitops.Checkout, base gitops.Base, j *job.Job, text string) (bool, error) {
	e, err := lessons.ParseEvidence(text)
	switch {
	case err != nil:
		return false, err
	case e.Check != "":
		return slices.ContainsFunc(j.Verify, func(c job.VerifyCheck) bool { return c.Name == e.Check }), nil
	case e.Run != "":
		return true, nil
	}
	id, err := checkout.IDAt(base.Tree, e.Path)
	return id != "", err
}
