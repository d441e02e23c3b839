// Package proposals owns the lessons of one run: those from the base commit, and those that its agent
// proposes. It adds them to the change or to a separate pull request. Package lessons owns the file in the
// repository.
package proposals

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/lessons"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// Lessons has one run's lessons.
type Lessons struct {
	FromBase memory.Memory // lessons of the base commit

	rec           *record.Record
	workspace     *workspace.Workspace
	job           *job.Job
	postsFeedback bool                // the run posts feedback instead of a change
	event         *transcript.Memory  // event about the given lessons; nil for none
	date          string              // date of the run
	checks        []string            // names of checks that ran
	lastRecorded  *transcript.Lessons // last recorded proposal; nil for none

	mu       sync.Mutex
	proposed []memory.Lesson
}

// Most lessons that a run proposes, and that it takes over from earlier runs.
const (
	maxProposed = 5
	maxCarried  = 20
)

// Read reads the lessons of the base commit. words is the task's text, which chooses the lessons to
// show. Invalid lessons are left out with a warning.
func Read(rec *record.Record, began time.Time, ws *workspace.Workspace, j *job.Job, words string) *Lessons {
	l := &Lessons{rec: rec, date: dateOf(rec.ID, began)}
	if !assembly.OffersMemory(j) {
		return l
	}
	raw, all, err := readBase(ws)
	if problems := config.Problems(nil); errors.As(err, &problems) {
		rec.Warn("lessons_left_out", "The lessons of the base commit are left out: %s; agent-ci validate shows all mistakes.", problems[0])
	} else if err != nil {
		rec.Warn("lessons_left_out", "The lessons of the base commit are left out: %s.", outcome.WithoutFullStop(err))
	}
	if len(all) == 0 {
		return l
	}
	for i := range all {
		all[i].Claim = rec.Redact(all[i].Claim)
	}
	l.FromBase = memory.Choose(all, words)
	l.event = &transcript.Memory{File: lessons.Path, SHA256: record.DigestOf(raw), Lessons: toTranscript(all), ChosenIDs: l.FromBase.Chosen}
	return l
}

// FromRecord returns the lessons in a run's record, up to the limits of a run. If the run continues a pull
// request, lessons may be from earlier runs.
func FromRecord(rec *record.Record, v *transcript.View) *Lessons {
	l := &Lessons{rec: rec, date: dateOf(v.Started.RunID, v.StartedAt), lastRecorded: v.Lessons, event: v.Memory}
	own, earlier := 0, 0
	for _, proposed := range v.ProposedLessons {
		switch ofThisRun := proposed.Run == v.Started.RunID; {
		case ofThisRun && own < maxProposed:
			own++
		case !ofThisRun && v.ContinuesPull() && earlier < maxCarried:
			earlier++
		default:
			continue
		}
		l.proposed = append(l.proposed, memory.Lesson(proposed))
	}
	if v.Memory == nil {
		return l
	}
	l.FromBase.Chosen = v.Memory.ChosenIDs
	for _, given := range v.Memory.Lessons {
		l.FromBase.Lessons = append(l.FromBase.Lessons, memory.Lesson(given))
	}
	return l
}

// ForReplay removes the proposed lessons, because the replayed calls propose them again.
func (l *Lessons) ForReplay() *Lessons {
	l.proposed, l.lastRecorded = nil, nil
	return l
}

// Attach sets the agent's workspace and job. postsFeedback means that the run makes no change.
func (l *Lessons) Attach(ws *workspace.Workspace, j *job.Job, postsFeedback bool) *Lessons {
	l.workspace, l.job, l.postsFeedback = ws, j, postsFeedback
	return l
}

// RecordChecks stores which checks have run, because lessons can name them as evidence.
func (l *Lessons) RecordChecks(tables ...[]transcript.VerifyRow) {
	var names []string
	for _, row := range slices.Concat(tables...) {
		if (row.Before != "" || row.After != "") && !slices.Contains(names, row.Name) {
			names = append(names, row.Name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checks = names
}

// RecordFromBase writes the event about the lessons of the base commit, if there are any.
func (l *Lessons) RecordFromBase() error {
	if l.event == nil {
		return nil
	}
	return l.rec.Append(l.event)
}

// toTranscript converts lessons to those of the transcript.
func toTranscript(all []memory.Lesson) []transcript.Lesson {
	recorded := make([]transcript.Lesson, len(all))
	for i, l := range all {
		recorded[i] = transcript.Lesson(l)
	}
	return recorded
}

// dateOf returns the date in a run's id, for replays, or else the date of began.
func dateOf(id string, began time.Time) string {
	if made := record.StartTime(id); !made.IsZero() {
		began = made
	}
	return began.UTC().Format(time.DateOnly)
}
