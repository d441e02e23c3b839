package record

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/store"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// The files of a run directory; docs/reference/run-directory.md describes them.
const (
	TranscriptFile  = "transcript.jsonl"
	ResultFile      = "result.json"
	PullRequestFile = "pull_request.md"
	ReportFile      = "report.html"
	PatchFile       = "changes.patch"
	PackFile        = "changes.pack"
	WorkPackFile    = "work.pack"
	OutputsFolder   = "outputs"
	PatchesFolder   = "changes"
	CheckoutFolder  = "checkout"
	LFSFolder       = "lfs"                           // contents of Git LFS files that the change adds
	LeftoverFolder  = "leftover"                      // files that no change can contain, moved out of the work tree
	StateFolder     = "state"                         // working files, removed after the run
	PrivateTree     = StateFolder + "/sandboxes/tree" // a copy of the checkout, in which commands work
	PrivateTreeFile = StateFolder + "/tree.json"      // a PrivateTreeInfo, once that copy is complete
	PublishFile     = "publish.json"                  // the result of publishing a bundle
)

// PlaceholdersFile maps secrets to their placeholders. A resumed run needs the same placeholders,
// because files made by setup may contain them.
const PlaceholdersFile = StateFolder + "/placeholders.json"

// Directory is a run directory. Only its owner may read it.
type Directory struct {
	path     string // absolute
	root     *os.Root
	lockFile *os.File // may be nil
}

// idTime is the layout of the time in a run's id. The time is in UTC.
const idTime = "20060102T150405Z"

// NewID returns a unique id for a run. Ids sort by time.
func NewID(now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(random[:])
}

// DefaultPath returns the run directory to use without --out. advice tells the user how to choose another.
func DefaultPath(getenv func(variable string) string, id, advice string) (string, error) {
	folder, err := RunsPath(getenv, advice+", or set HOME")
	return filepath.Join(folder, id), err
}

// RunsPath returns the usual folder of run directories. In Actions it is in the runner's temporary
// folder, otherwise in the user's state folder (XDG Base Directory Specification 0.8), or else in a temporary
// folder. advice tells the user how to choose another place.
func RunsPath(getenv func(variable string) string, advice string) (string, error) {
	if temp := getenv("RUNNER_TEMP"); temp != "" {
		return filepath.Join(temp, "agent-ci"), nil
	}
	if state := StatePath(getenv); state != "" {
		return filepath.Join(state, "runs"), nil
	}
	return TemporaryPath(advice)
}

// TemporaryPath returns the user's own folder for temporary files, and makes it. It accepts an existing folder
// only if nobody else can change it. Otherwise others could replace run directories. advice tells the user how to
// choose another place.
func TemporaryPath(advice string) (string, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("agent-ci-%d", os.Getuid()))
	if err := makeFolders(path, advice); err != nil {
		return "", err
	}
	private, err := isPrivateFolder(path)
	if err != nil {
		return "", fmt.Errorf("find run directory: %w", err)
	}
	if !private {
		return "", outcome.Stopf(outcome.InvalidInput, "run_directory", "The folder %s, for run directories, can be changed by other users; %s.", path, advice)
	}
	return path, nil
}

// CampaignsPath returns the user's folder of campaign ledgers, or "" if the environment names none.
func CampaignsPath(getenv func(variable string) string) string {
	if state := StatePath(getenv); state != "" {
		return filepath.Join(state, "campaigns")
	}
	return ""
}

// StatePath returns agent-ci's folder for a user's runs and campaigns, or "" if the environment
// names none.
func StatePath(getenv func(variable string) string) string {
	return userFolder(getenv, "XDG_STATE_HOME", ".local/state")
}

// userFolder returns agent-ci's folder below the folder in an environment variable. If that is empty,
// it is below the folder belowHome in HOME. It returns "" without either.
func userFolder(getenv func(variable string) string, variable, belowHome string) string {
	folder := getenv(variable)
	if home := getenv("HOME"); folder == "" && filepath.IsAbs(home) && home != os.DevNull {
		folder = filepath.Join(home, belowHome)
	}
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "agent-ci")
}

// makeFolders makes a folder and those above it.
func makeFolders(path, advice string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "run_directory", "The run directory cannot be made (%s: %v); %s.", path, outcome.WithoutPath(err), advice).Because(err)
	}
	return nil
}

// NewDirectory makes a run directory. It accepts an existing folder only if that is empty, because
// two runs must not mix. advice tells the user how to choose another place.
func NewDirectory(path, advice string) (*Directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find run directory: %w", err)
	}
	if err := makeFolders(path, advice); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read run directory: %w", err)
	}
	if len(entries) > 0 {
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s is not empty; give a new one with --out, or leave out --out.", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open run directory: %w", err)
	}
	return &Directory{path: path, root: root}, nil
}

// OpenDirectory opens the directory of an existing run.
func OpenDirectory(path string) (*Directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find run directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory", "%s is not a run directory (%v); name one that agent-ci run wrote.", path, outcome.WithoutPath(err)).Because(err)
	}
	if _, err := root.Stat(TranscriptFile); err != nil {
		root.Close()
		return nil, outcome.Stopf(outcome.InvalidInput, "run_directory",
			"%s is not a run directory: it has no %s; name one that agent-ci run wrote.", path, TranscriptFile).Because(err)
	}
	return &Directory{path: path, root: root}, nil
}

// CheckWritable returns an error if the directory is not writable. Call it before work whose result
// must be written there.
func (d *Directory) CheckWritable() error {
	name := "writable-" + NewID(time.Now())
	err := d.root.Mkdir(name, 0o700)
	if err == nil {
		err = d.root.Remove(name)
	}
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s cannot be written (%v), and the result goes there; make it writable, or give a copy of it.", d.path, outcome.WithoutPath(err)).Because(err)
	}
	return nil
}

// reserveFile occupies disk space, so that the result and the last events fit even on a full disk.
// It is removed, like other working files, before they are written. reserveInodeFile occupies an inode
// for the same reason.
const (
	reserveFile      = StateFolder + "/reserve"
	reserveInodeFile = StateFolder + "/reserve-place"
	reserveSize      = 64 << 10
)

// Reserve writes the reserve files. It fails if the directory cannot be written.
func (d *Directory) Reserve() error {
	err := cmp.Or(
		d.makeParentFolder(reserveFile),
		d.root.WriteFile(reserveFile, make([]byte, reserveSize), 0o600), d.root.WriteFile(reserveInodeFile, nil, 0o600),
	)
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s cannot be written (%v); make room, or give another place with --out.", d.path, err).Because(err)
	}
	return nil
}

// DropReserve removes the reserve files.
func (d *Directory) DropReserve() {
	d.Remove(reserveFile)
	d.Remove(reserveInodeFile)
}

// Close closes the directory and releases its lock.
func (d *Directory) Close() {
	_ = d.root.Close()
	if d.lockFile != nil {
		_ = d.lockFile.Close()
	}
}

// Path returns the absolute path of the run directory.
func (d *Directory) Path() string { return d.path }

// Root returns the run directory. Use it only for operations that need an *os.Root.
func (d *Directory) Root() *os.Root { return d.root }

// Join returns the absolute path of a file in the run directory, for people and child processes.
func (d *Directory) Join(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// Create creates or truncates a file. It makes the file's folder.
func (d *Directory) Create(name string) (*os.File, error) {
	if err := d.makeParentFolder(name); err != nil {
		return nil, err
	}
	return d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// makeParentFolder makes the folder of the file called name, which must be directly in the run directory.
func (d *Directory) makeParentFolder(name string) error {
	err := d.root.Mkdir(filepath.Dir(name), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Open opens a regular file for reading. In a foreign directory, anything may be at a file's path.
func (d *Directory) Open(name string) (*os.File, error) { return boundedfile.OpenIn(d.root, name) }

// MaxRead limits a file that is read as a whole, in bytes.
const MaxRead = 64 << 20

// Read returns the content of a file of up to MaxRead bytes.
func (d *Directory) Read(name string) ([]byte, error) {
	return boundedfile.ReadIn(d.root, name, MaxRead)
}

// Write replaces a file completely or not at all.
func (d *Directory) Write(name string, content []byte) error {
	return d.Replace(name, store.Text(content))
}

// Replace is like Write, for content that write produces piece by piece.
func (d *Directory) Replace(name string, write func(io.Writer) error) error {
	err := d.makeParentFolder(name)
	if err == nil {
		err = store.Replace(d.root, name, "new", write)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// WriteJSON writes a value as indented JSON.
func (d *Directory) WriteJSON(name string, value any) error {
	_, err := d.WriteRecorded(name, value)
	return err
}

// ReadJSON reads a JSON file into value. exists is false for a missing file, which is no error.
func (d *Directory) ReadJSON(name string, value any) (exists bool, err error) {
	raw, err := d.Read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("read %s: %w", name, err)
	}
	if err := plainjson.Unmarshal(raw, value); err != nil {
		return true, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// Has reports whether a file or folder exists.
func (d *Directory) Has(name string) bool {
	_, err := d.root.Lstat(name)
	return err == nil
}

// MakeFolder makes a folder that only the user may read, and returns its path.
func (d *Directory) MakeFolder(name string) (string, error) {
	if err := d.root.MkdirAll(name, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	return d.Join(name), nil
}

// Remove removes working files, even read-only folders made by commands. It ignores errors.
func (d *Directory) Remove(name string) { _ = sandbox.RemoveScratch(d.Join(name)) }

// Lock makes this process the only one that works in the run directory, until the process exits.
func (d *Directory) Lock() error {
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("lock the run directory: %w", err)
	}
	if _, err := store.Lock(f); err != nil {
		f.Close()
		return outcome.Stopf(outcome.InvalidInput, "run_directory", "Another agent-ci works in %s (%v); wait until it has ended.", d.path, err).Because(err)
	}
	d.lockFile = f
	return nil
}

// Locked reports whether an agent-ci process works in the directory.
func (d *Directory) Locked() bool {
	f, err := os.Open(d.path)
	if err != nil {
		return false
	}
	defer f.Close() // closing also releases the lock
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// lockWait is how long LockWithRetry tries.
const lockWait = 2 * time.Second

// LockWithRetry is Lock for resuming a run that may just have been killed. Children of that run may
// hold the lock a moment longer.
func (d *Directory) LockWithRetry(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return store.Await(ctx, func() (bool, error) {
		err := d.Lock()
		return err != nil, err
	})
}
