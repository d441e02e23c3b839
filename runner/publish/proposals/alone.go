package proposals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/lessons"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// Publish opens a separate pull request for the proposed lessons. It does so only if the job wants one, and
// the run's change is published or empty. A failure is a warning.
func (l *Lessons) Publish(ctx context.Context, to publish.Destination, p publish.Proposal, done publish.Publication) {
	isChangeUnpublished := !p.Change.Empty() && done.Commit == ""
	if l.job.Memory.Propose != job.ProposeAlone || len(l.proposed) == 0 || isChangeUnpublished {
		return
	}
	err := errors.New("they go to a pull request, and there is no forge to open one on; they stay in the transcript")
	if forge, isForge := to.(publish.Forge); isForge && p.Task.Mode() != intake.Join {
		err = l.openPull(ctx, forge, p, done)
	}
	if err != nil {
		l.rec.Warn("lessons_not_written", "The lessons that the model proposed are not published: %s.", outcome.WithoutFullStop(err))
	}
}

// openPull opens a pull request with the new lessons, if there are any, on the base of the published change.
func (l *Lessons) openPull(ctx context.Context, to publish.Forge, p publish.Proposal, done publish.Publication) error {
	empty, err := l.workspace.Checkout().ChangeBetween(ctx, done.Base, done.Base.Tree)
	if err != nil {
		return err
	}
	published := empty
	if !done.Change.Empty() {
		published = done.Change
	}
	all, err := l.provenLessons(published)
	if err = cmp.Or(err, l.WarnOfUnproven(published)); err != nil {
		return err
	}
	change, all, err := l.addNewLessons(ctx, empty, all)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return nil
	}
	c := l.JudgeCase(p.Job, change, nil)
	c.RunnerPaths = func(*gitops.ChangeSet) ([]string, error) { return []string{lessons.Path}, nil }
	if err := c.Judge(ctx); err != nil {
		return err
	}
	if err := l.recordProposal(transcript.LessonsAlone, all); err != nil {
		return err
	}
	p.Base, p.Change = done.Base, change
	return publish.Lessons(ctx, to, p, *l.lastRecorded, "lessons-"+claimsDigest(all))
}

// claimsDigest returns a digest of the lessons' claims, for the branch name. Equal proposals share a pull
// request, which stays closed once a person has closed it.
func claimsDigest(all []memory.Lesson) string {
	sum := sha256.New()
	for _, lesson := range all {
		fmt.Fprintln(sum, lesson.ID)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
