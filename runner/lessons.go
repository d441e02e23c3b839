package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/outcome"
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

// recall takes over what the record of a run says of its lessons: no more than a run may have.
func (so *reached) recall(rec *record.Record, v *transcript.View) {
	so.learnt = learnt{rec: rec, day: dayOf(v.Started.RunID, v.StartedAt), written: v.Lessons}
	own, carried := mostProposed, 0
	if onPull(v) { // else there is no earlier run whose lessons it could have
		carried = mostCarried
	}
	for _, l := range v.Proposed {
		left := &carried
		if l.Run == v.Started.RunID {
			left = &own
		}
		if *left--; *left >= 0 {
			so.learnt.proposed = append(so.learnt.proposed, memory.Lesson(l))
		}
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
