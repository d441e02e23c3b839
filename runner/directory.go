package runner

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// The files of a run directory; docs/run-directory.md describes them.
const (
	transcriptFile  = "transcript.jsonl"
	resultFile      = "result.json"
	pullRequestFile = "pull_request.md"
	reportFile      = "report.html"
	patchFile       = "changes.patch"
	packFile        = "changes.pack"
	workPackFile    = "work.pack"
	outputsFolder   = "outputs"
	patchesFolder   = "changes"
	checkoutFolder  = "checkout"
	stateFolder     = "state" // working files, gone after the run
)

// directory is a run directory. Only its owner may read it.
type directory struct {
	path string
	root *os.Root
	held *os.File // by which the directory is locked; may be nil
}

// idTime is the time in the id of a run, in UTC.
const idTime = "20060102T150405Z"

// newRunID is unique and sorts by time.
func newRunID(now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(random[:])
}

// directoryPath is where a run without --out goes: the runner's temporary
// folder in Actions, else the user's state folder (XDG Base Directory
// Specification 0.8).
func directoryPath(env environment, id string) (string, error) {
	if temp := env.get("RUNNER_TEMP"); temp != "" {
		return filepath.Join(temp, "agent-ci", id), nil
	}
	state := env.get("XDG_STATE_HOME")
	if home := env.home(); state == "" && home != "" {
		state = filepath.Join(home, ".local", "state")
	}
	if state == "" {
		folder, err := ownFolder(filepath.Join(os.TempDir(), fmt.Sprintf("agent-ci-%d", os.Getuid())))
		return filepath.Join(folder, id), err
	}
	return filepath.Join(state, "agent-ci", "runs", id), nil
}

// ownFolder makes a folder where every user may make one, or takes the one that
// is there if nobody else can change it: they could put another run directory in
// the place of a run's.
func ownFolder(path string) (string, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", outcome.Stopf(outcome.InvalidInput, "run_directory", "The run directory cannot be made (%v); give another with --out, or set HOME.", err).Because(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("find run directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Getuid() || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return "", outcome.Stopf(outcome.InvalidInput, "run_directory", "The folder %s, for run directories, can be changed by other users; give another with --out, or set HOME.", path)
	}
	return path, nil
}

// outsideCheckout refuses a run directory that would become a part of the
// change: one in the checkout that dir is in.
func outsideCheckout(path, dir string) error {
	root, ok := workTreeOf(dir)
	if !ok {
		return nil
	}
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err != nil && at != filepath.Dir(at) {
			continue // not there yet
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			return outcome.Stopf(outcome.InvalidInput, "run_directory",
				"The run directory %s lies in the checkout, where it would become part of the change; give one outside with --out.", path)
		}
		return nil
	}
}

// workTreeOf is the folder above dir, or dir, that holds a .git.
func workTreeOf(dir string) (string, bool) {
	if dir == "" {
		dir = "."
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	if at, err = filepath.EvalSymlinks(at); err != nil {
		return "", false
	}
	for {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, true
		}
		if at == filepath.Dir(at) {
			return "", false
		}
		at = filepath.Dir(at)
	}
}

// newDirectory makes a run directory. An existing one is taken only when it is
// empty: a run never mixes with another.
func newDirectory(path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find run directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory cannot be made (%v); give another with --out.", err).Because(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read run directory: %w", err)
	}
	if len(entries) > 0 {
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s is not empty; give a new one with --out, or leave --out away.", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open run directory: %w", err)
	}
	return &directory{path: path, root: root}, nil
}

// openDirectory opens the directory of a run that has ended.
func openDirectory(path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find run directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory", "%s is not a run directory (%v); name one that agent-ci run wrote.", path, err).Because(err)
	}
	if _, err := root.Stat(transcriptFile); err != nil {
		root.Close()
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory",
			"%s is not a run directory: it has no %s; name one that agent-ci run wrote.", path, transcriptFile).Because(err)
	}
	return &directory{path: path, root: root}, nil
}

// writable makes sure that a directory from elsewhere takes files: the result
// and what the work needs go there.
func (d *directory) writable() error {
	name := "writable-" + newRunID(time.Now())
	err := d.root.Mkdir(name, 0o700)
	if err == nil {
		err = d.root.Remove(name)
	}
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s cannot be written (%v), and the result goes there; make it writable, or give a copy of it.", d.path, rootCause(err)).Because(err)
	}
	return nil
}

// reserveFile keeps room for the result and the last events of a run that
// filled the disk; it goes with the other working files before they are
// written.
const (
	reserveFile = stateFolder + "/reserve"
	reserveSize = 64 << 10
)

func (d *directory) reserve() error {
	f, err := d.create(reserveFile)
	if err == nil {
		_, err = f.Write(make([]byte, reserveSize))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s cannot be written (%v); make room, or give another place with --out.", d.path, err).Because(err)
	}
	return nil
}

func (d *directory) close() {
	_ = d.root.Close()
	if d.held != nil {
		_ = d.held.Close()
	}
}

// join is the path of a file below the run directory, for people and children.
func (d *directory) join(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// create makes a new file and the folder that it stands in.
func (d *directory) create(name string) (*os.File, error) {
	if folder := filepath.Dir(name); folder != "." {
		if err := d.root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// open opens a file for reading. Who brings a directory from elsewhere may have put
// anything in a file's place.
func (d *directory) open(name string) (*os.File, error) { return given.OpenIn(d.root, name) }

// mostRead is how many bytes a file may have that is read as a whole.
const mostRead = 64 << 20

func (d *directory) read(name string) ([]byte, error) { return given.ReadIn(d.root, name, mostRead) }

// write puts a whole file in its place or leaves the old one.
func (d *directory) write(name string, content []byte) error {
	return d.replace(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// replace is write for content that is made while it is written.
func (d *directory) replace(name string, content func(io.Writer) error) error {
	temporary := name + ".new"
	f, err := d.create(temporary)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		_ = d.root.Remove(temporary)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (d *directory) writeJSON(name string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return d.write(name, append(raw, '\n'))
}
