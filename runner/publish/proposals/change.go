package proposals

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/agent/lessons"
	"github.com/agent-ci/agent-ci/runner/check/judge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// fileState describes the lessons file in a change.
type fileState struct {
	present  bool            // the change has the file
	byRunner bool            // the runner could have written it: the base's file with proposed lessons appended
	added    []memory.Lesson // the appended lessons
}

// hasFile reports whether a change touches the lessons file.
func hasFile(change *gitops.ChangeSet) bool {
	return change != nil && slices.ContainsFunc(change.Files, func(f changeset.File) bool { return f.Path == lessons.Path })
}

// fileStateIn describes the lessons file in a change.
func (l *Lessons) fileStateIn(change *gitops.ChangeSet) (found fileState, err error) {
	found.present = hasFile(change)
	if !found.present || l.job.Memory.Propose != job.ProposeInChange {
		return found, nil
	}
	before, after, valid, err := l.fileBeforeAndAfter(change)
	if valid {
		found.added, found.byRunner = lessons.Added(before, after, l.proposed)
	}
	return found, err
}

// fileBeforeAndAfter returns the lessons file of base and change. valid is false if one is no lessons file.
func (l *Lessons) fileBeforeAndAfter(change *gitops.ChangeSet) (before, after []byte, valid bool, err error) {
	if after, valid, err = l.readFile(change.Tree); err != nil || !valid {
		return nil, nil, false, err
	}
	if before, valid, err = l.readFile(change.Base.Tree); err != nil || !valid {
		return nil, nil, false, err
	}
	return before, after, true, nil
}

// readFile returns a tree's lessons file. valid is false if it is no lessons file.
func (l *Lessons) readFile(tree gitops.Tree) (raw []byte, valid bool, err error) {
	raw, err = fileIn(l.workspace.Checkout(), tree)
	if errors.As(err, new(config.Problems)) {
		return nil, false, nil
	}
	return raw, true, err
}

// pathsByRunner returns the paths in a change that agent-ci itself wrote. That is the lessons file, if only
// proposed lessons are added to it and their evidence still holds. Otherwise the result is nil.
func (l *Lessons) pathsByRunner(change *gitops.ChangeSet) ([]string, error) {
	found, err := l.fileStateIn(change)
	if err != nil || !found.byRunner {
		return nil, err
	}
	for _, lesson := range found.added {
		for _, text := range lesson.Evidence {
			valid, err := l.pinValidEvidence(text, change)
			if err != nil {
				return nil, err
			}
			if valid == nil {
				return nil, nil
			}
		}
	}
	return []string{lessons.Path}, nil
}

// appendProposed returns a change with the proposed lessons, and the added lessons. It adds none to an empty
// change: lessons alone are no work.
func (l *Lessons) appendProposed(ctx context.Context, change *gitops.ChangeSet) (with *gitops.ChangeSet, added []memory.Lesson, err error) {
	if change.Empty() {
		return change, nil, nil
	}
	all, err := l.provenLessons(change)
	if err != nil {
		return change, nil, err
	}
	return l.addNewLessons(ctx, change, all)
}

// addNewLessons adds lessons that the base lacks to a change that does not touch the lessons file. It returns
// the change and the added lessons. If the file cannot take them, it warns and adds none.
func (l *Lessons) addNewLessons(ctx context.Context, change *gitops.ChangeSet, all []memory.Lesson) (with *gitops.ChangeSet, added []memory.Lesson, err error) {
	before, err := fileIn(l.workspace.Checkout(), change.Base.Tree)
	if problems := config.Problems(nil); errors.As(err, &problems) {
		l.warnNotWritten(problems[0].String())
		return change, nil, nil
	}
	if err != nil {
		return change, nil, err
	}
	known, _ := lessons.Parse(before)
	if all = lessons.Unknown(known, all); len(all) == 0 {
		return change, nil, nil
	}
	content, err := lessons.Append(before, all)
	if err != nil {
		l.warnNotWritten(outcome.WithoutFullStop(err))
		return change, nil, nil
	}
	with, err = l.workspace.Checkout().WithFile(ctx, change, lessons.Path, content)
	return with, all, err
}

// warnNotWritten warns that the proposed lessons are not written. why ends the sentence.
func (l *Lessons) warnNotWritten(why string) {
	l.rec.Warn("lessons_not_written", "The lessons that the model proposed are not written: %s.", why)
}

// recordProposal records the proposed lessons, if they differ from the last record.
func (l *Lessons) recordProposal(place string, all []memory.Lesson) error {
	now := &transcript.Lessons{File: lessons.Path, In: place, Lessons: toTranscript(all)}
	nothingToRecord := l.lastRecorded == nil && len(all) == 0
	if nothingToRecord || reflect.DeepEqual(l.lastRecorded, now) {
		return nil
	}
	l.lastRecorded = now
	return l.rec.Append(now)
}

// ForReviewers returns the lessons in a change for reviewers. It reads the change itself, not a bundle's record.
func (l *Lessons) ForReviewers(change *gitops.ChangeSet) (*transcript.Lessons, error) {
	found, err := l.fileStateIn(change)
	if err != nil || len(found.added) == 0 {
		return nil, err
	}
	return &transcript.Lessons{File: lessons.Path, In: transcript.LessonsInChange, Lessons: toTranscript(found.added)}, nil
}

// addToWorkTree writes the proposed lessons to the work tree, so that checks see them. It returns the work tree's
// change with the lessons file. If the agent itself changed that file, addToWorkTree leaves it, and judging refuses
// the change later. If the job wants no lessons in its change, addToWorkTree does nothing.
func (l *Lessons) addToWorkTree(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if l.job.Memory.Propose != job.ProposeInChange || l.postsFeedback {
		return change, nil
	}
	change, err := l.withExactBytes(ctx, change)
	if err != nil {
		return change, err
	}
	found, err := l.fileStateIn(change)
	if err != nil {
		return change, err
	}
	if byAgent := found.present && !found.byRunner; byAgent {
		return change, nil
	}
	if found.present {
		if change, err = l.workspace.Revert(ctx, change, []string{lessons.Path}); err != nil {
			return change, err
		}
		if change, err = l.withExactBytes(ctx, change); err != nil {
			return change, err
		}
	}
	with, all, err := l.appendProposed(ctx, change)
	if err != nil {
		return change, err
	}
	if len(all) > 0 {
		if change, err = l.writeToTree(ctx, change, with); err != nil {
			return change, err
		}
		written, err := l.fileStateIn(change)
		if err != nil {
			return change, err
		}
		if !written.byRunner {
			l.rec.Warn("lessons_not_written", "The lessons that the model proposed are not part of the change: a file at %s, or a rule of .gitignore, prevents it.", lessons.Path)
			all = nil
		}
	}
	return change, l.recordProposal(transcript.LessonsInChange, all)
}

// writeToTree writes the lessons file of the change withLessons to the work tree. It returns the work tree's
// new change. If an obstacle is in the way, it returns change and no error.
func (l *Lessons) writeToTree(ctx context.Context, change, withLessons *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	checkout := l.workspace.Checkout()
	alone, err := checkout.ChangeBetween(ctx, change.Base, change.Base.Tree)
	if err != nil {
		return change, err
	}
	content, err := checkout.ReadFile(withLessons.Tree, lessons.Path, lessons.MaxSize)
	if err == nil {
		alone, err = checkout.WithFile(ctx, alone, lessons.Path, content)
	}
	if err != nil {
		return change, err
	}
	if err := l.workspace.ApplyChange(ctx, alone); errors.As(err, new(*gitops.ObstructedError)) {
		return change, nil
	} else if err != nil {
		return change, err
	}
	if change, err = l.workspace.Changes(ctx); err != nil {
		return change, err
	}
	return l.withExactBytes(ctx, change)
}

// withExactBytes restores the exact bytes of the lessons file in a change. The agent may have changed
// attributes so that git converted its line ends. If the file then equals the base's, it leaves the change. Without
// a valid lessons file, the change stays as it is.
func (l *Lessons) withExactBytes(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if l.job.Memory.Propose != job.ProposeInChange || !hasFile(change) {
		return change, nil
	}
	before, after, valid, err := l.fileBeforeAndAfter(change)
	if !valid {
		return change, err
	}
	exact := lessons.RestoreLineEnds(before, after)
	if bytes.Equal(exact, after) {
		return change, nil
	}
	if bytes.Equal(exact, before) { // only line ends differ from the base
		if change, err = l.workspace.Revert(ctx, change, []string{lessons.Path}); err != nil || !hasFile(change) {
			return change, err
		}
	}
	return l.workspace.Checkout().WithFile(ctx, change, lessons.Path, exact)
}

// ReproposeEarlier returns an earlier run's change without the lessons file. It proposes the lessons that the change
// added to the file again, so that they are added with the new ones. If the change did more to the file, or the job
// wants no lessons in its change, it drops them with a warning.
func (l *Lessons) ReproposeEarlier(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if !hasFile(change) {
		return change, nil
	}
	after, _, err := l.readFile(change.Tree)
	if err != nil {
		return nil, err
	}
	before, _, err := l.readFile(change.Base.Tree)
	if err != nil {
		return nil, err
	}
	parsed, _ := lessons.Parse(after)
	added, onlyAdded := lessons.Added(before, after, parsed)
	if !onlyAdded || len(added) > maxCarried || l.job.Memory.Propose != job.ProposeInChange {
		l.rec.Warn("lessons_left_out", "The lessons of the earlier run are not taken over (memory.propose).")
		added = nil
	}
	for _, lesson := range added {
		if lesson.Evidence, err = l.withoutPins(lesson.Evidence, change); err == nil {
			err = l.propose(lesson)
		}
		if err != nil {
			return nil, err
		}
	}
	return l.workspace.Checkout().Without(ctx, change, lessons.Path)
}

// withoutPins removes pins that held with an earlier change, because base and files may differ now.
func (l *Lessons) withoutPins(evidence []string, change *gitops.ChangeSet) ([]string, error) {
	all := slices.Clone(evidence)
	for i, text := range evidence {
		valid, err := l.pinValidEvidence(text, change)
		if err != nil {
			return nil, err
		}
		pinHolds := valid != nil && valid.Path != "" && valid.String() == text
		if pinHolds {
			all[i] = valid.Path
		}
	}
	return all, nil
}

// Rebase moves a change to another base. It appends lessons again after the base's, so that they do not conflict.
func (l *Lessons) Rebase(ctx context.Context, change *gitops.ChangeSet, base gitops.Base) (*gitops.ChangeSet, error) {
	checkout := l.workspace.Checkout()
	found, err := l.fileStateIn(change)
	if err != nil {
		return nil, err
	}
	if !found.byRunner {
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
	with, all, err := l.appendProposed(ctx, moved)
	if err = cmp.Or(err, l.WarnOfUnproven(moved)); err != nil {
		return nil, err
	}
	return with, l.recordProposal(transcript.LessonsInChange, all)
}

// TakeChange reads the agent's change from the work tree and adds the proposed lessons. It reverts protected
// paths if the job says so, and returns them in dropped.
func (l *Lessons) TakeChange(ctx context.Context) (change *gitops.ChangeSet, dropped []string, err error) {
	change, err = l.workspace.TakeChange(ctx, func(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
		change, err := l.withExactBytes(ctx, change)
		if err != nil {
			return change, err
		}
		lessonsFile, err := l.fileStateIn(change)
		if err != nil {
			return change, err
		}
		var byRunner []string // does not count as the agent's change
		if lessonsFile.byRunner {
			byRunner = []string{lessons.Path}
		}
		verdict, err := judge.Verdict(l.job.Policy, change, byRunner)
		if err != nil {
			return change, err
		}
		if dropped = verdict.Drop; len(dropped) > 0 {
			if change, err = l.workspace.RevertProtected(ctx, change, dropped); err != nil {
				return change, err
			}
		}
		return l.addToWorkTree(ctx, change)
	})
	return change, dropped, err
}

// JudgeCase returns a change and its context, for package judge. Lessons that agent-ci wrote do not count as
// protected. repairs is the change of the pull request that this change repairs, or nil.
func (l *Lessons) JudgeCase(j *job.Job, change, repairs *gitops.ChangeSet) judge.Case {
	return judge.Case{Record: l.rec, Job: j, Checkout: l.workspace.Checkout(), Change: change, RunnerPaths: l.pathsByRunner, RepairedChange: repairs}
}
