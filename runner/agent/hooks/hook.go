package hooks

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// OperatorPrefix begins the names of the operator's hooks. The names of a job's hooks cannot begin with it.
const OperatorPrefix = "operator/"

// Hook is a hook of a run. A trusted one runs without a sandbox.
type Hook struct {
	transcript.ActiveHook
	timeout time.Duration
}

// readBaseFile returns the content of a file of the base commit. A missing file gives fs.ErrNotExist.
type readBaseFile func(name string, limit int64) ([]byte, error)

// maxDigestedBytes is how much of a file counts for a hook's digest, from its beginning.
const maxDigestedBytes = 16 << 20

// Combine returns all hooks in the order of asking: the operator's, then the job's, each sorted by name. Only the
// operator's hooks can be trusted. base reads files of the base commit and home is the user's home folder; both are for
// the hooks' digests.
func Combine(operators, jobs map[string]job.Hook, base readBaseFile, home string) ([]Hook, error) {
	var all []Hook
	for _, source := range []struct {
		prefix string
		hooks  map[string]job.Hook
	}{{OperatorPrefix, operators}, {"", jobs}} {
		for _, name := range slices.Sorted(maps.Keys(source.hooks)) {
			settings := source.hooks[name]
			h := Hook{transcript.ActiveHook{
				Name: source.prefix + name, Event: settings.On, Run: settings.Run, Tools: settings.Tools, Argv: settings.Argv,
				Trusted: source.prefix == OperatorPrefix && settings.Trusted == job.TrustedOperator, MustFire: settings.MustFire, OnError: settings.OnError,
			}, time.Duration(settings.Timeout)}
			if len(h.Run) == 0 {
				return nil, fmt.Errorf("the hook %s names no program", h.Name)
			}
			var err error
			if h.SHA256, err = digestHook(settings, base, home); err != nil {
				return nil, fmt.Errorf("read the program of the hook %s: %w", h.Name, err)
			}
			all = append(all, h)
		}
	}
	return all, nil
}

// digestHook returns the SHA-256 of a hook's settings and of the files that its command line names. A relative
// name is a file of the base commit. Other files that the program reads are not covered.
func digestHook(hook job.Hook, base readBaseFile, home string) (string, error) {
	sum := sha256.New()
	settings, err := json.Marshal(hook)
	if err != nil {
		return "", err
	}
	sum.Write(settings)
	for i, word := range hook.Run {
		content, err := fileOf(job.ExpandHome(word, home), i == 0, base)
		if err != nil {
			return "", err
		}
		if content != nil {
			fmt.Fprintf(sum, "\n%d %x", i, sha256.Sum256(content))
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// fileOf returns the content of the file that a word of a hook's command line names, or nil if it names no file.
// isProgram is true for the first word, which names a file only if it contains a slash.
func fileOf(word string, isProgram bool, base readBaseFile) ([]byte, error) {
	if filepath.IsAbs(word) {
		return readIfFile(word), nil
	}
	name := path.Clean(word)
	isInPATH := isProgram && !strings.Contains(word, "/")
	isOption := strings.HasPrefix(word, "-")
	isInRepository := filepath.IsLocal(name) && name != "."
	if base == nil || isInPATH || isOption || !isInRepository {
		return nil, nil
	}
	content, err := base(name, maxDigestedBytes)
	if err == nil {
		return content, nil
	}
	isMissing := errors.Is(err, os.ErrNotExist) // a missing program is reported at its start
	if isMissing || !isProgram {                // an argument need not be a file
		return nil, nil
	}
	return nil, err
}

// readIfFile returns the first maxDigestedBytes of a regular file, or nil if there is none that can be read.
func readIfFile(name string) []byte {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxDigestedBytes))
	if err != nil {
		return nil
	}
	return content
}

// FromTranscript returns the hooks in a transcript's list.
func FromTranscript(list transcript.Hooks) []Hook {
	var all []Hook
	for _, active := range list.Hooks {
		all = append(all, Hook{ActiveHook: active})
	}
	return all
}

// OperatorHooks returns those of all hooks that the operator set.
func OperatorHooks(all []Hook) []Hook {
	return slices.DeleteFunc(slices.Clone(all), func(h Hook) bool { return !strings.HasPrefix(h.Name, OperatorPrefix) })
}
