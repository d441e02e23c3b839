package proposals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/lessons"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// LessonTaker returns the function that accepts the agent's lessons, or nil if the job wants none.
func (l *Lessons) LessonTaker() assembly.TakeLesson {
	if !l.job.Memory.Proposes() || l.postsFeedback {
		return nil
	}
	return func(_ context.Context, p memory.Proposal, seen assembly.SeenFile) (memory.Lesson, string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		lesson := memory.Lesson{ID: lessons.LessonID(p.Claim), Claim: p.Claim, Run: l.rec.ID, Date: l.date}
		if refusal := l.proposalProblem(p, lesson.ID); refusal != "" {
			return lesson, refusal, nil
		}
		for i, text := range p.Evidence {
			e, refusal, err := l.checkEvidence(text, seen)
			if err != nil {
				return lesson, "", err
			}
			if refusal != "" {
				return lesson, fmt.Sprintf("evidence[%d]: %s", i, refusal), nil
			}
			if !slices.Contains(lesson.Evidence, e.String()) {
				lesson.Evidence = append(lesson.Evidence, e.String())
			}
		}
		return lesson, "", l.propose(lesson)
	}
}

// propose records a lesson and adds it to the proposed ones.
func (l *Lessons) propose(lesson memory.Lesson) error {
	if err := l.rec.Append(transcript.Lesson(lesson)); err != nil {
		return err
	}
	l.proposed = append(l.proposed, lesson)
	return nil
}

// proposalProblem returns a message for the model about a wrong proposal, apart from its evidence, or "".
func (l *Lessons) proposalProblem(p memory.Proposal, id string) string {
	sameLesson := func(other memory.Lesson) bool { return other.ID == id }
	own := 0
	for _, lesson := range l.proposed {
		if lesson.Run == l.rec.ID {
			own++
		}
	}
	switch err := lessons.CheckClaim(p.Claim); {
	case err != nil:
		return "claim " + err.Error()
	case own >= maxProposed:
		return fmt.Sprintf("this run has proposed %d lessons, and that is all that one may. Go on without.", own)
	case slices.ContainsFunc(l.FromBase.Lessons, sameLesson) || slices.ContainsFunc(l.proposed, sameLesson):
		return "this lesson is known already. Go on without."
	case l.hasSecret(p.Claim):
		return "claim holds what looks like a secret. Say it without."
	case len(p.Evidence) == 0 || len(p.Evidence) > lessons.MaxEvidence:
		return fmt.Sprintf("evidence has %d entries; give 1 to %d: a path, path@commit, or check:NAME", len(p.Evidence), lessons.MaxEvidence)
	}
	return ""
}

// hasSecret reports whether text has a secret, or the mark of a removed one.
func (l *Lessons) hasSecret(text string) bool {
	return l.rec.Redact(text) != text || strings.Contains(text, "[secret ")
}

// checkEvidence parses and verifies evidence from the model. refusal is a message for the model, or "".
func (l *Lessons) checkEvidence(text string, seen assembly.SeenFile) (e lessons.Evidence, refusal string, err error) {
	e, wrong := lessons.ParseEvidence(text)
	switch {
	case wrong != nil:
		return e, wrong.Error(), nil
	case l.hasSecret(text):
		return e, "holds what looks like a secret", nil
	case e.Run != "":
		return e, "a run is no evidence that you can give; name a path or a check", nil
	case e.Check != "" && !slices.Contains(l.checks, e.Check):
		return e, fmt.Sprintf("there is no check %q that ran; those that did are %s", e.Check, cmp.Or(strings.Join(l.checks, ", "), "none")), nil
	case e.Check != "":
		return e, "", nil
	}
	base := l.workspace.Base()
	inBase, err := l.workspace.Checkout().IDAt(base.Tree, e.Path)
	if err != nil {
		return e, "", err
	}
	inChange, err := seen(e.Path)
	switch {
	case err != nil:
		return e, "", err
	case inBase == "" && inChange == "":
		return e, fmt.Sprintf("there is no file %q, in the base commit or now; give a path from the repository's root", e.Path), nil
	case e.PinnedTo != "" && !pinMatches(e.PinnedTo, inBase, inChange, base.SHA):
		return e, fmt.Sprintf("%s is neither the base commit nor a blob of %s; give the path alone", e.PinnedTo, e.Path), nil
	}
	return e, "", nil
}

// pinMatches reports whether a pin is a prefix of the path's blob id, or of the base commit if it has the path.
func pinMatches(pin, inBase, inChange, base string) bool {
	isPrefixOf := func(id string) bool { return id != "" && strings.HasPrefix(id, pin) }
	isBaseCommit := inBase != "" && isPrefixOf(base)
	return isPrefixOf(inBase) || isPrefixOf(inChange) || isBaseCommit
}

// provenLessons returns the proposed lessons for a change, each path pinned to a commit or blob. It drops
// evidence that does not hold, and lessons without evidence.
func (l *Lessons) provenLessons(change *gitops.ChangeSet) ([]memory.Lesson, error) {
	var all []memory.Lesson
	for _, lesson := range l.proposed {
		var evidence []string
		for _, text := range lesson.Evidence {
			valid, err := l.pinValidEvidence(text, change)
			if err != nil {
				return nil, err
			}
			if valid != nil {
				evidence = append(evidence, valid.String())
			}
		}
		lesson.Evidence = evidence
		if len(evidence) > 0 {
			all = append(all, lesson)
		}
	}
	return all, nil
}

// WarnOfUnproven warns about proposed lessons whose evidence does not hold with a change.
func (l *Lessons) WarnOfUnproven(change *gitops.ChangeSet) error {
	proven, err := l.provenLessons(change)
	if err != nil || len(proven) == len(l.proposed) {
		return err
	}
	for _, lesson := range l.proposed {
		if !slices.ContainsFunc(proven, func(p memory.Lesson) bool { return p.ID == lesson.ID }) {
			l.rec.Warn("lessons_left_out", "The lesson %s that the model proposed is left out, since its evidence is missing: %s", lesson.ID, lesson.Claim)
		}
	}
	return nil
}

// pinValidEvidence returns evidence pinned to a commit or blob, or nil if it does not hold with the change.
func (l *Lessons) pinValidEvidence(text string, change *gitops.ChangeSet) (*lessons.Evidence, error) {
	e, err := lessons.ParseEvidence(text)
	if err != nil {
		return nil, err
	}
	if e.Path == "" {
		if e.Check != "" && slices.Contains(l.checks, e.Check) {
			return &e, nil
		}
		return nil, nil // a run is never valid evidence here, even if a bundle has one
	}
	checkout := l.workspace.Checkout()
	inChange, err := checkout.IDAt(change.Tree, e.Path)
	if err != nil {
		return nil, err
	}
	inBase, err := checkout.IDAt(change.Base.Tree, e.Path)
	if err != nil {
		return nil, err
	}
	isPinned := e.PinnedTo != ""
	switch {
	case inChange == "":
		return nil, nil
	case isPinned && !pinMatches(e.PinnedTo, inBase, inChange, change.Base.SHA):
		return nil, nil
	case isPinned: // the pin stays
	case inChange == inBase:
		e.PinnedTo = clip.SHA(change.Base.SHA)
	default:
		e.PinnedTo = clip.SHA(inChange)
	}
	return &e, nil
}
