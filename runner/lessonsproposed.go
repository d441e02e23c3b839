package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// proposer takes the lessons that the agent proposes; nil where the job wants none.
func (so *reached) proposer() worker.TakeLesson {
	if !so.job().Memory.Proposes() || so.task.Subject != nil {
		return nil
	}
	var one sync.Mutex
	return func(_ context.Context, p memory.Proposal, seen worker.SeenFile) (memory.Lesson, string, error) {
		one.Lock()
		defer one.Unlock()
		l := memory.Lesson{ID: lessons.IDOf(p.Claim), Claim: p.Claim, Run: so.learnt.rec.ID, Date: so.learnt.day}
		if refusal := so.whyNoLesson(p, l.ID); refusal != "" {
			return l, refusal, nil
		}
		for i, text := range p.Evidence {
			e, refusal, err := so.evidence(text, seen)
			if err != nil || refusal != "" {
				return l, fmt.Sprintf("evidence[%d]: %s", i, refusal), err
			}
			if !slices.Contains(l.Evidence, e.String()) {
				l.Evidence = append(l.Evidence, e.String())
			}
		}
		return l, "", so.propose(l)
	}
}

// propose notes a lesson. It is in the record before it is anywhere else.
func (so *reached) propose(l memory.Lesson) error {
	if err := so.learnt.rec.Append(transcript.TypeLesson, transcript.Lesson(l)); err != nil {
		return err
	}
	so.learnt.proposed = append(so.learnt.proposed, l)
	return nil
}

// whyNoLesson says, for the model, what is wrong with a proposal beside its evidence.
func (so *reached) whyNoLesson(p memory.Proposal, id string) string {
	own, known := 0, func(l memory.Lesson) bool { return l.ID == id }
	for _, l := range so.learnt.proposed {
		if l.Run == so.learnt.rec.ID {
			own++
		}
	}
	switch err := lessons.CheckClaim(p.Claim); {
	case err != nil:
		return "claim " + err.Error()
	case own >= mostProposed:
		return fmt.Sprintf("this run has proposed %d lessons, and that is all that one may. Go on without.", own)
	case slices.ContainsFunc(so.learnt.memory.Lessons, known) || slices.ContainsFunc(so.learnt.proposed, known):
		return "this lesson is known already. Go on without."
	case so.hasSecret(p.Claim):
		return "claim holds what looks like a secret. Say it without."
	case len(p.Evidence) == 0 || len(p.Evidence) > lessons.MostEvidence:
		return fmt.Sprintf("evidence has %d entries; give 1 to %d: a path, path@commit, or check:NAME", len(p.Evidence), lessons.MostEvidence)
	}
	return ""
}

// hasSecret says whether a text has a secret, or the mark that stands for one in a record.
func (so *reached) hasSecret(text string) bool {
	return so.learnt.rec.Redact(text) != text || strings.Contains(text, "[secret ")
}

// evidence reads evidence that a model names, and makes sure that it is there.
func (so *reached) evidence(text string, seen worker.SeenFile) (e lessons.Evidence, refusal string, err error) {
	e, wrong := lessons.ParseEvidence(text)
	switch {
	case wrong != nil:
		return e, wrong.Error(), nil
	case so.hasSecret(text):
		return e, "holds what looks like a secret", nil
	case e.Run != "":
		return e, "a run is no evidence that you can give; name a path or a check", nil
	case e.Check != "" && !so.ran(e.Check):
		return e, fmt.Sprintf("there is no check %q that ran; those that did are %s", e.Check, cmp.Or(strings.Join(so.checksRun(), ", "), "none")), nil
	case e.Check != "":
		return e, "", nil
	}
	base := so.workspace.Base()
	inBase, err := so.workspace.Checkout().IDAt(base.Tree, e.Path)
	if err != nil {
		return e, "", err
	}
	here, err := seen(e.Path)
	switch {
	case err != nil:
		return e, "", err
	case inBase == "" && here == "":
		return e, fmt.Sprintf("there is no file %q, in the base commit or now; give a path from the repository's root", e.Path), nil
	case e.At != "" && !hasPin(e.At, inBase, here, base.SHA):
		return e, fmt.Sprintf("%s is neither the base commit nor a blob of %s; give the path alone", e.At, e.Path), nil
	}
	return e, "", nil
}

// hasPin says whether a pin is the beginning of the base commit, which has the path, or of an id
// that the path has.
func hasPin(pin, inBase, here, base string) bool {
	of := func(id string) bool { return id != "" && strings.HasPrefix(id, pin) }
	return of(inBase) || of(here) || inBase != "" && of(base)
}

func (so *reached) ran(check string) bool { return slices.Contains(so.checksRun(), check) }

// checksRun are the names of the checks that ran.
func (so *reached) checksRun() []string {
	var names []string
	for _, row := range slices.Concat(so.baseline.Rows, so.table.Rows) {
		if (row.Before != "" || row.After != "") && !slices.Contains(names, row.Name) {
			names = append(names, row.Name)
		}
	}
	return names
}

// pinned are the proposed lessons as they are written beside a change: each path names a commit or
// a blob that has it. What is not there any more is no evidence, and without evidence there is no
// lesson.
func (so *reached) pinned(change *gitops.ChangeSet) ([]memory.Lesson, error) {
	var all []memory.Lesson
	for _, l := range so.learnt.proposed {
		var evidence []string
		for _, text := range l.Evidence {
			e, err := lessons.ParseEvidence(text)
			if err == nil {
				e, err = so.pin(e, change)
			}
			if err != nil {
				return nil, err
			}
			if e != (lessons.Evidence{}) {
				evidence = append(evidence, e.String())
			}
		}
		if l.Evidence = evidence; len(evidence) > 0 {
			all = append(all, l)
		}
	}
	return all, nil
}

// tellUnshown warns of the proposed lessons that are left out beside a change.
func (so *reached) tellUnshown(change *gitops.ChangeSet) error {
	shown, err := so.pinned(change)
	if err != nil || len(shown) == len(so.learnt.proposed) {
		return err
	}
	for _, l := range so.learnt.proposed {
		if !slices.ContainsFunc(shown, func(s memory.Lesson) bool { return s.ID == l.ID }) {
			so.learnt.rec.Warn("lessons_left_out", "The lesson %s that the model proposed is left out, since nothing that showed it is there any more: %s", l.ID, l.Claim)
		}
	}
	return nil
}

// pin is evidence with a commit or blob; the zero value for what does not hold beside the change.
func (so *reached) pin(e lessons.Evidence, change *gitops.ChangeSet) (lessons.Evidence, error) {
	if e.Path == "" {
		if e.Run != "" || !so.ran(e.Check) { // no model gives a run as evidence, whatever a bundle says
			e = lessons.Evidence{}
		}
		return e, nil
	}
	checkout := so.workspace.Checkout()
	here, err := checkout.IDAt(change.Tree, e.Path)
	inBase := ""
	if err == nil {
		inBase, err = checkout.IDAt(change.Base.Tree, e.Path)
	}
	switch {
	case err != nil:
		return e, err
	case here == "", e.At != "" && !hasPin(e.At, inBase, here, change.Base.SHA):
		return lessons.Evidence{}, nil
	case e.At == "" && here == inBase:
		e.At = gitops.Short(change.Base.SHA)
	case e.At == "":
		e.At = gitops.Short(here)
	}
	return e, nil
}
