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

// Prune selects runs to remove: older than Age, without the newest Keep. Set Age or Keep.
type Prune struct {
	Age         time.Duration // since something of a run was last written; 0 for any
	Keep        int           // 0 for none
	Resumable   bool          // also runs that can go on
	Unpublished bool          // also runs whose change is nowhere but in their directory
	DryRun      bool
	Now         time.Time
}

// pruned is what became of a run that Prune means.
type pruned struct {
	Run
	Bytes int64 // of its files, as far as they could be counted
	Kept  string
	Err   error // of removing it
}

// Why runs are kept that are old enough.
const (
	keptGoingOn   = "it is going on"
	keptResumable = "it can be resumed"
	keptOnlyCopy  = "it has work that is nowhere else"
	keptElsewhere = "its directory was named by --out, and is yours to remove"
)

// Prune removes runs, and gives what became of each that o means. Only directories in
// the usual folder are removed, under the lock that runs hold.
func (m Machine) Prune(o Prune) ([]pruned, error) {
	all, err := m.List()
	if err != nil {
		return nil, err
	}
	m.forgetGone(o)
	var list []pruned
	for i, run := range all {
		if i < o.Keep || o.Now.Sub(run.Changed) < o.Age {
			continue
		}
		p := pruned{Run: run}
		switch {
		case run.State == GoingOn:
			p.Kept = keptGoingOn
		case !run.usual:
			p.Kept = keptElsewhere
		case run.Resumable && !o.Resumable:
			p.Kept = keptResumable
		case run.onlyCopy && !o.Unpublished:
			p.Kept = keptOnlyCopy
		default:
			p.Bytes = sizeOf(run.Directory)
			if !o.DryRun {
				p.remove(record.DigestsPath(m.Get))
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// remove removes the directory and the notes of its transcript, unless somebody has begun to work in it.
func (p *pruned) remove(notes string) {
	dir, err := record.OpenDirectory(p.Directory)
	if err != nil {
		p.Err = err
		return
	}
	defer dir.Close()
	if dir.Lock() != nil {
		p.Kept = keptGoingOn
		return
	}
	dir.ForgetRecorded(notes)
	if err := sandbox.RemoveScratch(p.Directory); err != nil {
		p.Err = fmt.Errorf("remove %s: %w", p.Directory, err)
	}
}

// forgetGone drops the notes of directories that are not there any more.
func (m Machine) forgetGone(o Prune) {
	if m.Folder != "" || o.DryRun {
		return
	}
	for id, path := range record.Elsewhere(m.Get) {
		if _, err := os.Lstat(filepath.Join(path, record.TranscriptFile)); os.IsNotExist(err) {
			record.ForgetElsewhere(m.Get, id)
		}
	}
}

// sizeOf adds up the files of a directory.
func sizeOf(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is not counted
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// ParseAge reads how old something is: a number with d for days or w for weeks, or what
// Go takes for a duration (36h).
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
