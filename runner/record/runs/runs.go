// Package runs owns the list of runs on this machine: where their directories are, a short summary
// of each, and which of them may be removed. It reads what runs left and does not know how a run
// works.
//
// Strangers wrote some of what it returns, such as titles and addresses. It returns them as plain
// text.
package runs

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// The states of a run.
const (
	GoingOn     = "going_on"    // a process works in its directory
	Interrupted = "interrupted" // it has no end
	Ended       = "ended"
)

// Run summarizes a run for a list.
type Run struct {
	ID          string             `json:"id"`
	Directory   string             `json:"directory"`
	Started     time.Time          `json:"started"`
	LastEvent   time.Time          `json:"changed"` // time of the last event
	Repository  string             `json:"repository,omitempty"`
	Issue       string             `json:"issue,omitempty"` // OWNER/REPO#N
	Task        string             `json:"task"`            // its title, or its first line
	State       string             `json:"state"`
	Resumable   bool               `json:"resumable"`
	Outcome     outcome.Outcome    `json:"outcome,omitempty"` // empty before the end
	Reason      string             `json:"reason,omitempty"`
	Message     string             `json:"message,omitempty"`
	PullRequest record.PullRequest `json:"pull_request"`

	inUsualFolder bool // its directory is in the usual folder and named by its id
	hasOnlyCopy   bool // its change is only in its directory
}

// Store lists, finds and removes the runs on this machine.
type Store struct {
	Getenv func(variable string) string // reads an environment variable
	// Folder contains run directories named by their ids. Empty means the usual folder, together with
	// the noted run directories outside it.
	Folder string
	// Resumable returns why the run in a directory cannot resume, or nil if it can.
	Resumable func(*record.Directory) error
}

// List returns the runs, the newest first. It skips other folders.
func (m Store) List() ([]Run, error) {
	var all []Run
	folder, entries, err := m.entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if run, found := m.summarize(e.Name(), filepath.Join(folder, e.Name())); found {
			run.inUsualFolder = true
			all = append(all, run)
		}
	}
	if m.Folder == "" {
		for id, path := range record.RunsElsewhere(m.Getenv) {
			if run, found := m.summarize(id, path); found {
				all = append(all, run)
			}
		}
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID)) })
	return all, nil
}

// Path returns the folder of the run directories.
func (m Store) Path() (string, error) {
	if m.Folder != "" {
		return filepath.Abs(m.Folder)
	}
	return record.RunsPath(m.Getenv, "set HOME")
}

// entries returns the run directories in Path. A missing folder is an error only if Folder names it.
func (m Store) entries() (folder string, directories []os.DirEntry, err error) {
	folder, err = m.Path()
	if err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil && (m.Folder != "" || !os.IsNotExist(err)) {
		return "", nil, err
	}
	return folder, slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() || !record.IsID(e.Name()) }), nil
}

// Find returns the directory of the run with a path or id. It returns an unknown name unchanged.
func (m Store) Find(name string) string {
	if _, err := os.Stat(name); err == nil || !record.IsID(name) {
		return name
	}
	if folder, err := m.Path(); err == nil {
		if _, err := os.Stat(filepath.Join(folder, name, record.TranscriptFile)); err == nil {
			return filepath.Join(folder, name)
		}
	}
	return cmp.Or(record.RunsElsewhere(m.Getenv)[name], name)
}

// summarize returns the summary of the run in a directory. found is false if there is no run, or one with
// another id.
func (m Store) summarize(id, path string) (run Run, found bool) {
	dir, err := record.OpenDirectory(path)
	if err != nil {
		return Run{}, false
	}
	defer dir.Close()
	r := Run{ID: id, Directory: path, Started: record.StartTime(id), State: Interrupted, PullRequest: record.PullRequest{Operation: "none"}}
	recordedID, err := r.readBeginning(dir)
	if err != nil || recordedID != "" && recordedID != id {
		return Run{}, false // another run took the place
	}
	r.LastEvent = r.Started
	if info, err := dir.Root().Stat(record.TranscriptFile); err == nil {
		r.LastEvent = info.ModTime()
	}
	r.readResult(dir)
	if dir.Locked() {
		r.State = GoingOn
	} else {
		r.Resumable = m.Resumable(dir) == nil
	}
	return r, true
}

const (
	// maxBeginning is how many bytes of a transcript are read for its first events,
	// and maxEvents how many of these.
	maxBeginning = 4 << 20
	maxEvents    = 20
)

// readBeginning sets the start time, task and repository from the run's first events. It returns
// the run's id, or "" if no event has it yet.
func (r *Run) readBeginning(dir *record.Directory) (id string, err error) {
	f, err := dir.Open(record.TranscriptFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	seen := 0
	for e, err := range transcript.Read(io.LimitReader(f, maxBeginning)) { // of an unreadable event, what is readable
		seen++
		if err != nil || seen > maxEvents {
			break
		}
		if seen == 1 {
			r.Started = e.Time
		}
		switch d := e.Content.(type) {
		case transcript.RunStarted:
			id = d.RunID
		case transcript.Task:
			r.Issue, r.Task = d.Issue, cmp.Or(d.Title, firstLine(d.Text))
		case transcript.Workspace:
			r.Repository = d.Repository
			return id, nil // the task's event comes before
		}
	}
	return id, nil
}

// firstLine returns the first line that is not blank.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// readResult sets the state and outcome of an ended run. If a bundle was published later, it sets
// that pull request.
func (r *Run) readResult(dir *record.Directory) {
	var result, published record.Result
	if exists, err := dir.ReadJSON(record.ResultFile, &result); exists && err == nil {
		r.State, r.Outcome, r.Reason, r.Message, r.PullRequest = Ended, result.Outcome, result.Reason, result.Message, result.PullRequest
	}
	if exists, err := dir.ReadJSON(record.PublishFile, &published); exists && err == nil && published.PullRequest.Number != 0 {
		r.PullRequest = published.PullRequest
	}
	changedCheckout := r.Outcome == outcome.Changed && (r.Reason == "left_in_checkout" || r.Reason == "committed")
	ownsCheckout := dir.Has(record.CheckoutFolder)
	publishedLater := published.Outcome == outcome.Changed || published.Outcome == outcome.NoChanges
	r.hasOnlyCopy = changedCheckout && ownsCheckout && !publishedLater
}
