package runner

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// foundLessons are those of the file of lessons in a change.
type foundLessons struct {
	there bool            // the change has the file
	ours  bool            // as the runner writes it: as in the base, with nothing but proposed lessons behind
	added []memory.Lesson // these
}

// hasLessons says whether a change has the file of lessons.
func hasLessons(change *gitops.ChangeSet) bool {
	return change != nil && slices.ContainsFunc(change.Files, func(f gitops.File) bool { return f.Path == lessons.Path })
}

func (so *reached) lessonsIn(change *gitops.ChangeSet) (found foundLessons, err error) {
	found.there = hasLessons(change)
	if !found.there || so.job().Memory.Propose != job.ProposeInChange {
		return found, nil
	}
	now, fit, err := so.lessonsFile(change.Tree)
	if err != nil || !fit {
		return found, err
	}
	before, fit, err := so.lessonsFile(change.Base.Tree)
	if err == nil && fit {
		found.added, found.ours = lessons.Added(before, now, so.learnt.proposed)
	}
	return found, err
}

// lessonsFile is the file of lessons of a tree; it is not fit where something there could not be read
// as one.
func (so *reached) lessonsFile(tree gitops.Tree) (raw []byte, fit bool, err error) {
	raw, err = fileOfLessons(so.workspace.Checkout(), tree)
	if errors.As(err, new(job.Problems)) {
		return nil, false, nil
	}
	return raw, true, err
}

// writtenHere are the paths of a change that the runner wrote, and not the agent: the file of
// lessons, as long as the evidence of each holds.
func (so *reached) writtenHere(change *gitops.ChangeSet) ([]string, error) {
	found, err := so.lessonsIn(change)
	if err != nil || !found.ours {
		return nil, err
	}
	for _, l := range found.added {
		for _, text := range l.Evidence {
			e, err := lessons.ParseEvidence(text)
			if err == nil {
				e, err = so.pin(e, change)
			}
			if err != nil || e == (lessons.Evidence{}) {
				return nil, err
			}
		}
	}
	return []string{lessons.Path}, nil
}

// addLessons puts the proposed lessons behind those that the base of a change has. Lessons alone
// are no work: a change without anything else stays as it is.
func (so *reached) addLessons(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, []memory.Lesson, error) {
	all, err := so.pinned(change)
	if err != nil || change.Empty() {
		return change, nil, err
	}
	return so.putLessons(ctx, change, all)
}

// putLessons puts lessons into the file of a change, which is as in its base.
func (so *reached) putLessons(ctx context.Context, change *gitops.ChangeSet, all []memory.Lesson) (*gitops.ChangeSet, []memory.Lesson, error) {
	before, err := fileOfLessons(so.workspace.Checkout(), change.Base.Tree)
	if problems := job.Problems(nil); errors.As(err, &problems) {
		so.notWritten(problems[0].String())
		return change, nil, nil
	}
	if err != nil {
		return change, nil, err
	}
	known, _ := lessons.Parse(lessons.Path, before)
	if all = lessons.New(known, all); len(all) == 0 {
		return change, nil, nil
	}
	content, err := lessons.Append(before, all)
	if err != nil {
		so.notWritten(outcome.Trimmed(err))
		return change, nil, nil
	}
	with, err := so.workspace.Checkout().WithFile(ctx, change, lessons.Path, content)
	return with, all, err
}

func (so *reached) notWritten(why string) {
	so.learnt.rec.Warn("lessons_not_written", "The lessons that the model proposed are not written: %s.", why)
}

// recordLessons writes which lessons are proposed to people, where that is not what was written last.
func (so *reached) recordLessons(place string, all []memory.Lesson) error {
	now := &transcript.Lessons{File: lessons.Path, In: place, Lessons: recordedLessons(all)}
	if so.learnt.written == nil && len(all) == 0 || so.learnt.written != nil && reflect.DeepEqual(so.learnt.written, now) {
		return nil
	}
	so.learnt.written = now
	return so.learnt.rec.Append(transcript.TypeLessons, now)
}

// toldIn are the lessons of a change, for who reviews it: what a bundle says of them is not believed.
func (so *reached) toldIn(change *gitops.ChangeSet) (*transcript.Lessons, error) {
	found, err := so.lessonsIn(change)
	if err != nil || len(found.added) == 0 {
		return nil, err
	}
	return &transcript.Lessons{File: lessons.Path, In: transcript.LessonsInChange, Lessons: recordedLessons(found.added)}, nil
}

// withLessons has the change that the agent left hold the lessons that it proposed, in what the
// agent works in, so that checks see them and the change is one. A file that the agent changed
// itself stays, to be refused.
func (so *reached) withLessons(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if so.job().Memory.Propose != job.ProposeInChange || so.task.Subject != nil {
		return change, nil
	}
	change, err := so.inExactBytes(ctx, change)
	if err != nil {
		return change, err
	}
	found, err := so.lessonsIn(change)
	if err != nil || found.there && !found.ours {
		return change, err
	}
	if found.there {
		if change, err = so.workspace.Revert(ctx, change, []string{lessons.Path}); err == nil {
			change, err = so.inExactBytes(ctx, change)
		}
		if err != nil {
			return change, err
		}
	}
	with, all, err := so.addLessons(ctx, change)
	if err != nil {
		return change, err
	}
	if len(all) > 0 {
		if change, err = so.layLessons(ctx, change, with); err != nil {
			return change, err
		}
		if found, err = so.lessonsIn(change); err != nil || !found.ours {
			so.learnt.rec.Warn("lessons_not_written", "The lessons that the model proposed are not part of the change: what stands at %s, or what git ignores, keeps them out.", lessons.Path)
			all = nil
		}
	}
	return change, cmp.Or(err, so.recordLessons(transcript.LessonsInChange, all))
}

// layLessons puts the file of lessons of a change into what the agent works in. What stands in its
// way there is no reason to end a run.
func (so *reached) layLessons(ctx context.Context, change, with *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	checkout := so.workspace.Checkout()
	alone, err := checkout.Between(ctx, change.Base, change.Base.Tree)
	if err != nil {
		return change, err
	}
	content, err := checkout.ReadFile(with.Tree, lessons.Path, lessons.MaxSize)
	if err == nil {
		alone, err = checkout.WithFile(ctx, alone, lessons.Path, content)
	}
	if err != nil {
		return change, err
	}
	if err := so.workspace.LayOver(ctx, alone); errors.As(err, new(*gitops.ObstructedError)) {
		return change, nil
	} else if err != nil {
		return change, err
	}
	if change, err = so.workspace.Changes(ctx); err != nil {
		return change, err
	}
	return so.inExactBytes(ctx, change)
}

// inExactBytes gives the file of lessons of a change the bytes that it has in the base, or that the
// runner wrote, where git sees other line ends of them by attributes that the agent changed.
func (so *reached) inExactBytes(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if so.job().Memory.Propose != job.ProposeInChange || !hasLessons(change) {
		return change, nil
	}
	now, fit, err := so.lessonsFile(change.Tree)
	if err != nil || !fit {
		return change, err
	}
	before, fit, err := so.lessonsFile(change.Base.Tree)
	if err != nil || !fit {
		return change, err
	}
	exact := lessons.Exact(before, now)
	if bytes.Equal(exact, now) {
		return change, nil
	}
	if bytes.Equal(exact, before) { // the agent may have changed the line ends itself
		if change, err = so.workspace.Revert(ctx, change, []string{lessons.Path}); err != nil || !hasLessons(change) {
			return change, err
		}
	}
	return so.workspace.Checkout().WithExact(ctx, change, lessons.Path, exact)
}

// takeEarlierLessons takes the lessons off the change that an earlier run of the task made, to be
// written anew with those of this one.
func (so *reached) takeEarlierLessons(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if !hasLessons(change) {
		return change, nil
	}
	now, _, err := so.lessonsFile(change.Tree)
	if err != nil {
		return nil, err
	}
	before, _, err := so.lessonsFile(change.Base.Tree)
	if err != nil {
		return nil, err
	}
	is, _ := lessons.Parse(lessons.Path, now)
	added, ok := lessons.Added(before, now, is)
	if !ok || len(added) > mostCarried || so.job().Memory.Propose != job.ProposeInChange {
		so.learnt.rec.Warn("lessons_left_out", "The lessons of the earlier run are not taken over (memory.propose).")
		added = nil
	}
	for _, l := range added {
		if l.Evidence, err = so.unpinned(l.Evidence, change); err == nil {
			err = so.propose(l)
		}
		if err != nil {
			return nil, err
		}
	}
	return so.workspace.Checkout().Without(ctx, change, lessons.Path)
}

// unpinned is evidence that held beside a change, to be pinned anew: what comes now may be of another
// base, and change the files that show a lesson.
func (so *reached) unpinned(evidence []string, change *gitops.ChangeSet) ([]string, error) {
	all := slices.Clone(evidence)
	for i, text := range evidence {
		e, err := lessons.ParseEvidence(text)
		if err != nil {
			return nil, err
		}
		held, err := so.pin(e, change)
		if err != nil {
			return nil, err
		}
		if e.Path != "" && held == e {
			all[i] = e.Path
		}
	}
	return all, nil
}

// onto is a change on another base. Its lessons are put behind those that the base has by then:
// two runs that add some are in no conflict.
func (so *reached) onto(ctx context.Context, change *gitops.ChangeSet, base gitops.Base) (*gitops.ChangeSet, error) {
	checkout := so.workspace.Checkout()
	found, err := so.lessonsIn(change)
	if err != nil {
		return nil, err
	}
	if !found.ours {
		return checkout.Rebase(ctx, change, base)
	}
	without, err := checkout.Without(ctx, change, lessons.Path)
	if err != nil {
		return nil, err
	}
	moved, err := checkout.Rebase(ctx, without, base)
	if err != nil {
		return nil, err
	}
	with, all, err := so.addLessons(ctx, moved)
	if err = cmp.Or(err, so.tellUnshown(moved)); err != nil {
		return nil, err
	}
	return with, so.recordLessons(transcript.LessonsInChange, all)
}

// proposeAlone opens a pull request of its own for the lessons that the model proposed, once the
// change is published, or there is none. It ends no run.
func (in *invocation) proposeAlone(ctx context.Context, so *reached, to publish.Destination, p publish.Proposal) {
	if so.job().Memory.Propose != job.ProposeAlone || len(so.learnt.proposed) == 0 || !so.change.Empty() && so.out.Commit == "" {
		return
	}
	err := errors.New("they go to a pull request, and there is no forge to open one on; they stay in the transcript")
	if forge, is := to.(publish.Forge); is && so.task.Mode != intake.Join {
		err = in.openLessons(ctx, so, forge, p)
	}
	if err != nil {
		in.rec.Warn("lessons_not_written", "The lessons that the model proposed are not published: %s.", outcome.Trimmed(err))
	}
}

func (in *invocation) openLessons(ctx context.Context, so *reached, to publish.Forge, p publish.Proposal) error {
	base := so.published().Base
	empty, err := so.workspace.Checkout().Between(ctx, base, base.Tree)
	if err != nil {
		return err
	}
	beside := empty
	if change := so.published().Change; !change.Empty() {
		beside = change
	}
	all, err := so.pinned(beside)
	if err = cmp.Or(err, so.tellUnshown(beside)); err != nil {
		return err
	}
	change, all, err := so.putLessons(ctx, empty, all)
	if err != nil || len(all) == 0 {
		return err
	}
	judged := in.judged(so, so.job(), change)
	judged.Written = func(*gitops.ChangeSet) ([]string, error) { return []string{lessons.Path}, nil }
	if err := judged.Judge(ctx); err != nil {
		return err
	}
	if err := so.recordLessons(transcript.LessonsAlone, all); err != nil {
		return err
	}
	p.Base, p.Change = base, change
	return publish.Lessons(ctx, to, p, *so.learnt.written, "lessons-"+claimsDigest(all))
}

// claimsDigest names lessons by what they claim: what another run proposes alike is the same pull
// request, and stays closed when a person closed it.
func claimsDigest(all []memory.Lesson) string {
	sum := sha256.New()
	for _, l := range all {
		fmt.Fprintln(sum, l.ID)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
