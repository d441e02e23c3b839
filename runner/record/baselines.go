package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/store"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
)

// BaselinesPath returns the folder of cached baseline results in the user's state folder. It returns
// "" if the environment names no absolute state folder.
func BaselinesPath(getenv func(variable string) string) string {
	state := StatePath(getenv)
	if !filepath.IsAbs(state) {
		return ""
	}
	return filepath.Join(state, "baselines")
}

// CachePath returns the user's cache folder for agent-ci (XDG Base Directory Specification 0.8), or a
// temporary folder if the environment names none.
func CachePath(getenv func(variable string) string) (string, error) {
	if cache := userFolder(getenv, "XDG_CACHE_HOME", ".cache"); filepath.IsAbs(cache) {
		return cache, nil
	}
	return TemporaryPath("set HOME")
}

// baselineLifetime is how long a cached baseline is valid.
const baselineLifetime = 7 * 24 * time.Hour

// Baselines caches baseline results of checks, one file per key. It caches only green results,
// because they can never make a verdict more lenient.
type Baselines struct{ root *os.Root }

// OpenBaselines opens the folder at path, and makes it if it is missing. It fails if other users can change
// the folder.
func OpenBaselines(path string) (*Baselines, error) {
	root, err := openPrivateFolder(path)
	if err != nil {
		return nil, fmt.Errorf("open the kept baselines: %w", err)
	}
	return &Baselines{root}, nil
}

// openPrivateFolder opens the folder at path, and makes it if it is missing. It fails if other users can
// change the folder.
func openPrivateFolder(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	private, err := isPrivateFolder(path)
	if err == nil && !private {
		err = errors.New("others can change the folder")
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// isPrivateFolder reports whether a path is a folder that only the user can change.
func isPrivateFolder(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	isOwn := ok && int(stat.Uid) == os.Getuid()
	othersMayWrite := info.Mode().Perm()&0o022 != 0
	return isOwn && info.IsDir() && !othersMayWrite, nil
}

func (b *Baselines) Close() error { return b.root.Close() }

// cachedBaseline is the content of a cache file.
type cachedBaseline struct {
	RunID string    `json:"run_id"`
	At    time.Time `json:"at"`
	State string    `json:"state"`
}

// GreenRun returns the id of the run that cached a green baseline under key. It returns "" if there is
// none, and for an unreadable or expired one.
func (b *Baselines) GreenRun(key string, now time.Time) (runID string) {
	const maxBytes = 4 << 10
	raw, err := boundedfile.ReadIn(b.root, key, maxBytes)
	var cached cachedBaseline
	if err != nil || json.Unmarshal(raw, &cached) != nil {
		return ""
	}
	isValid := cached.State == "green" && IsSafeID(cached.RunID)
	if age := now.Sub(cached.At); !isValid || age < 0 || age > baselineLifetime {
		return ""
	}
	return cached.RunID
}

// PutGreen caches a green baseline of the run runID under key. It does not wait for the disk: GreenRun ignores a
// file that a crash left incomplete.
func (b *Baselines) PutGreen(key, runID string, now time.Time) error {
	raw, err := json.Marshal(cachedBaseline{runID, now.UTC(), "green"})
	if err != nil {
		return fmt.Errorf("keep a baseline: %w", err)
	}
	if err := store.ReplaceCached(b.root, key, runID, store.Text(raw)); err != nil {
		return fmt.Errorf("keep a baseline: %w", err)
	}
	return nil
}

// RemoveExpired removes expired baselines.
func (b *Baselines) RemoveExpired(now time.Time) {
	entries, err := fs.ReadDir(b.root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > baselineLifetime {
			_ = b.root.Remove(e.Name()) // an error does not matter; the next run tries again
		}
	}
}
