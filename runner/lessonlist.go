package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
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
	err = o.look(ctx, func(_ *invocation, ws *workspace.Workspace, set *settings.Settings) (err error) {
		if gone, err = lessonsGone(ws, &set.Job); errors.As(err, &problems) {
			return nil
		}
		return err
	})
	return gone, problems, err
}

func lessonsGone(ws *workspace.Workspace, j *job.Job) (gone []LessonStatus, err error) {
	_, all, err := readLessons(ws)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		status := LessonStatus{ID: l.ID}
		for _, text := range l.Evidence {
			there, err := evidenceStands(ws.Checkout(), ws.Base(), j, text)
			if err != nil {
				return nil, err
			}
			if !there {
				status.Gone = append(status.Gone, text)
			}
		}
		if len(status.Gone) > 0 {
			gone = append(gone, status)
		}
	}
	return gone, nil
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
