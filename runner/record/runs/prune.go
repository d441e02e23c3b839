package runs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
)

// PruneOptions selects runs to remove: those older than Age, except the newest Keep. Set Age or Keep.
type PruneOptions struct {
	Age         time.Duration // since the run's last change; 0 for any age
	Keep        int           // how many of the newest runs stay; 0 for none
	Resumable   bool          // also remove runs that can be resumed
	Unpublished bool          // also remove runs whose change exists only in their directory
	DryRun      bool
	Now         time.Time
}

// Pruned is the result for a run that Prune selects.
type Pruned struct {
	Run
	Bytes      int64 // of the run's readable files
	KeptReason string
	Err        error // of removing it
}

// Reasons to keep a run that is old enough.
const (
	keptGoingOn   = "it is going on"
	keptResumable = "it can be resumed"
	keptOnlyCopy  = "it has work that is nowhere else"
	keptElsewhere = "its directory was named by --out, and is yours to remove"
)

// Prune removes runs and returns the result for each run that o selects. It removes only
// directories in the usual folder, while it holds their lock.
func (m Store) Prune(o PruneOptions) ([]Pruned, error) {
	all, err := m.List()
	if err != nil {
		return nil, err
	}
	m.forgetMissing(o)
	var results []Pruned
	for i, run := range all {
		if i < o.Keep || o.Now.Sub(run.LastEvent) < o.Age {
			continue
		}
		p := Pruned{Run: run}
		switch {
		case run.State == GoingOn:
			p.KeptReason = keptGoingOn
		case !run.inUsualFolder:
			p.KeptReason = keptElsewhere
		case run.Resumable && !o.Resumable:
			p.KeptReason = keptResumable
		case run.hasOnlyCopy && !o.Unpublished:
			p.KeptReason = keptOnlyCopy
		default:
			p.Bytes = directorySize(run.Directory)
			if !o.DryRun {
				p.remove(record.DigestsPath(m.Getenv))
			}
		}
		results = append(results, p)
	}
	return results, nil
}

// remove removes the run directory and its transcript's digests in digestsFolder. It keeps a run in which
// another process works.
func (p *Pruned) remove(digestsFolder string) {
	dir, err := record.OpenDirectory(p.Directory)
	if err != nil {
		p.Err = err
		return
	}
	defer dir.Close()
	if dir.Lock() != nil {
		p.KeptReason = keptGoingOn
		return
	}
	dir.ForgetRecorded(digestsFolder)
	if err := sandbox.RemoveScratch(p.Directory); err != nil {
		p.Err = fmt.Errorf("remove %s: %w", p.Directory, err)
	}
}

// forgetMissing removes the notes about directories that no longer exist.
func (m Store) forgetMissing(o PruneOptions) {
	if m.Folder != "" || o.DryRun {
		return
	}
	for id, path := range record.RunsElsewhere(m.Getenv) {
		if _, err := os.Lstat(filepath.Join(path, record.TranscriptFile)); os.IsNotExist(err) {
			record.ForgetElsewhere(m.Getenv, id)
		}
	}
}

// directorySize returns the size of the files in a directory in bytes.
func directorySize(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable files do not count
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// ParseAge parses an age: a number with d for days or w for weeks, or a duration as in Go (36h).
func ParseAge(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, found := strings.CutSuffix(text, unit); found {
			n, err := strconv.ParseUint(number, 10, 16)
			if err != nil || n == 0 {
				return 0, fmt.Errorf("%q is no age", text)
			}
			return time.Duration(n) * length, nil
		}
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return 0, fmt.Errorf("%q is no age", text)
	}
	return age, nil
}
