package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// learnt are the lessons of a run: those that it remembers, and those that it proposes.
type learnt struct {
	rec      *record.Record
	memory   memory.Memory
	given    *transcript.Memory // the event of memory; nil for nothing to remember
	proposed []memory.Lesson
	day      string              // of the run
	written  *transcript.Lessons // the last event of what was written; nil for none
}

// Most that one run proposes, and that it takes over of earlier runs of its task.
const (
	mostProposed = 5
	mostCarried  = 20
)

// remember reads the lessons of the commit that configures the run. What is wrong with them ends
// no run: the lessons are left out.
func (in *invocation) remember(so *reached) {
	so.learnt = learnt{rec: in.rec, day: dayOf(in.rec.ID, in.began)}
	if !worker.OffersMemory(so.job()) {
		return
	}
	raw, all, err := readLessons(so.workspace)
	if problems := job.Problems(nil); errors.As(err, &problems) {
		in.rec.Warn("lessons_left_out", "The lessons of the base commit are left out: %s; agent-ci validate tells all that is wrong with them.", problems[0])
	} else if err != nil {
		in.rec.Warn("lessons_left_out", "The lessons of the base commit are left out: %s.", outcome.Trimmed(err))
	}
	if len(all) == 0 {
		return
	}
	for i := range all {
		all[i].Claim = in.rec.Redact(all[i].Claim)
	}
	so.learnt.memory = memory.Choose(all, so.task.Title+"\n"+so.task.Text)
	digest := sha256.Sum256(raw)
	so.learnt.given = &transcript.Memory{
		File: lessons.Path, SHA256: hex.EncodeToString(digest[:]), Lessons: recordedLessons(all), Chosen: so.learnt.memory.Chosen,
	}
}

// dayOf is the day of a run by its id, which a replay has too; else that on which it began.
func dayOf(id string, began time.Time) string {
	stamp, _, _ := strings.Cut(id, "-")
	if made, err := time.Parse("20060102T150405Z", stamp); err == nil {
		began = made
	}
	return began.UTC().Format(time.DateOnly)
}

// readLessons reads the file of lessons of the base commit. A commit without it has none.
func readLessons(ws *workspace.Workspace) ([]byte, []memory.Lesson, error) {
	raw, err := fileOfLessons(ws.Checkout(), ws.Base().Tree)
	if err != nil {
		return nil, nil, err
	}
	all, problems := lessons.Parse(lessons.Path, raw)
	if len(problems) > 0 {
		return raw, nil, problems
	}
	return raw, all, nil
}

// fileOfLessons reads the file of lessons of a tree; nil where there is nothing. Of what is no file
// that could be read as one the error is job.Problems.
func fileOfLessons(in *gitops.Checkout, tree gitops.Tree) ([]byte, error) {
	raw, err := in.ReadFile(tree, lessons.Path, lessons.MaxSize)
	switch {
	case errors.As(err, new(*gitops.TooLargeError)):
		return nil, lessons.TooLarge(lessons.Path)
	case !errors.Is(err, fs.ErrNotExist):
		return raw, err
	}
	if free, err := isFree(in, tree, lessons.Path); err != nil || free {
		return nil, err
	}
	return nil, lessons.NoFile(lessons.Path)
}

// isFree says whether a tree has nothing at a path, nor anything but a folder where its folder would be.
func isFree(in *gitops.Checkout, tree gitops.Tree, name string) (bool, error) {
	id, err := in.IDAt(tree, name)
	if err != nil || id != "" {
		return false, err
	}
	folder := path.Dir(name)
	if id, err = in.IDAt(tree, folder); err != nil || id == "" {
		return err == nil, err
	}
	return in.IsFolder(tree, folder)
}

// recall takes over what the record of a run says of its lessons.
func (so *reached) recall(rec *record.Record, v *transcript.View) {
	so.learnt = learnt{rec: rec, day: dayOf(v.Started.RunID, v.StartedAt), written: v.Lessons}
	for _, l := range v.Proposed[:min(len(v.Proposed), mostProposed+mostCarried)] {
		so.learnt.proposed = append(so.learnt.proposed, memory.Lesson(l))
	}
	if so.learnt.given = v.Memory; v.Memory == nil {
		return
	}
	so.learnt.memory.Chosen = v.Memory.Chosen
	for _, l := range v.Memory.Lessons {
		so.learnt.memory.Lessons = append(so.learnt.memory.Lessons, memory.Lesson(l))
	}
}

// recordMemory writes what the run remembers.
func (so *reached) recordMemory() error {
	if so.learnt.given == nil {
		return nil
	}
	return so.learnt.rec.Append(transcript.TypeMemory, so.learnt.given)
}

func recordedLessons(all []memory.Lesson) []transcript.Lesson {
	recorded := make([]transcript.Lesson, len(all))
	for i, l := range all {
		recorded[i] = transcript.Lesson(l)
	}
	return recorded
}

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

// foundLessons are those of the file of lessons in a change.
type foundLessons struct {
	there bool            // the change has the file
	ours  bool            // as the runner writes it: as in the base, with nothing but proposed lessons behind
	added []memory.Lesson // these
}

func (so *reached) lessonsIn(change *gitops.ChangeSet) (found foundLessons, err error) {
	found.there = change != nil && slices.ContainsFunc(change.Files, func(f gitops.File) bool { return f.Path == lessons.Path })
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
	found, err := so.lessonsIn(change)
	if err != nil || found.there && !found.ours {
		return change, err
	}
	if found.there {
		if change, err = so.workspace.Revert(ctx, change, []string{lessons.Path}); err != nil {
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
	return so.workspace.Changes(ctx)
}

// takeEarlierLessons takes the lessons off the change that an earlier run of the task made, to be
// written anew with those of this one.
func (so *reached) takeEarlierLessons(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	if !slices.ContainsFunc(change.Files, func(f gitops.File) bool { return f.Path == lessons.Path }) {
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
	if err != nil {
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
		in.rec.Warn("lessons_not_proposed", "The lessons that the model proposed are not published: %s.", outcome.Trimmed(err))
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
	if err != nil {
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
