package hooks

import (
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// OperatorPrefix begins the names of the hooks of the operator's file, which no hook of a job
// can have.
const OperatorPrefix = "operator/"

// Hook is one that is asked.
type Hook struct {
	job.Hook
	Name    string
	SHA256  string // of its program and arguments, and of the files of them that are known
	trusted bool   // it runs outside of any sandbox
}

// Trusted says that the hook runs outside of any sandbox.
func (h Hook) Trusted() bool { return h.trusted }

// Base gives a file of the base commit; an error of fs.ErrNotExist where there is none.
type Base func(name string, limit int64) ([]byte, error)

// mostProgram is how much of a file of a hook counts for its digest.
const mostProgram = 16 << 20

// Collect puts hooks into the order in which they are asked: those of the operator first, then
// those of the job, by their names. What a job says of trust counts for nothing. home is the user's
// folder, in which words of hooks may name files.
func Collect(operators, jobs map[string]job.Hook, base Base, home string) ([]Hook, error) {
	var all []Hook
	for _, from := range []struct {
		prefix string
		hooks  map[string]job.Hook
	}{{OperatorPrefix, operators}, {"", jobs}} {
		for _, name := range slices.Sorted(maps.Keys(from.hooks)) {
			h := Hook{Hook: from.hooks[name], Name: from.prefix + name}
			h.trusted = from.prefix != "" && h.Hook.Trusted == job.TrustedOperator
			if len(h.Run) == 0 {
				return nil, fmt.Errorf("the hook %s names no program", h.Name)
			}
			sum, err := h.digest(base, home)
			if err != nil {
				return nil, fmt.Errorf("read the program of the hook %s: %w", h.Name, err)
			}
			h.SHA256 = sum
			all = append(all, h)
		}
	}
	return all, nil
}

// digest is of all that the hook is by itself: its settings, and the contents of the files that
// its words name, in the base tree or by absolute paths. What an interpreter reads besides is
// not in it.
func (h Hook) digest(base Base, home string) (string, error) {
	sum := sha256.New()
	settings, err := json.Marshal(h.Hook)
	if err != nil {
		return "", err
	}
	sum.Write(settings)
	for i, word := range h.Run {
		content, err := fileOf(job.AtHome(word, home), i == 0, base)
		if err != nil {
			return "", err
		}
		if content != nil {
			own := sha256.Sum256(content)
			fmt.Fprintf(sum, "\n%d %x", i, own)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// fileOf returns the content of the file that a word of a hook names, as far as it counts; nil for none.
func fileOf(word string, program bool, base Base) ([]byte, error) {
	switch {
	case filepath.IsAbs(word):
		info, err := os.Stat(word)
		if err != nil || !info.Mode().IsRegular() {
			return nil, nil
		}
		f, err := os.Open(word)
		if err != nil {
			return nil, nil
		}
		defer f.Close()
		content, err := io.ReadAll(io.LimitReader(f, mostProgram))
		if err != nil {
			return nil, nil
		}
		return content, nil
	case base == nil || word == "" || program && !strings.Contains(word, "/") || strings.HasPrefix(word, "-"):
		return nil, nil
	}
	name := path.Clean(word)
	if !filepath.IsLocal(name) || name == "." {
		return nil, nil
	}
	content, err := base(name, mostProgram)
	if err != nil && (!program || errors.Is(err, os.ErrNotExist)) { // a word need not be a file, and a missing program is reported when it starts
		return nil, nil
	}
	return content, err
}

// Listed are the hooks for the transcript.
func Listed(all []Hook) transcript.Hooks {
	list := transcript.Hooks{Hooks: []transcript.HookActive{}}
	for _, h := range all {
		list.Hooks = append(list.Hooks, transcript.HookActive{
			Name: h.Name, On: h.On, Run: h.Run, SHA256: h.SHA256, Tools: h.Tools, Argv: h.Argv, Trusted: h.trusted, MustFire: h.MustFire, OnError: h.OnError,
		})
	}
	return list
}

// Recorded are the hooks that a transcript lists.
func Recorded(list transcript.Hooks) []Hook {
	var all []Hook
	for _, a := range list.Hooks {
		all = append(all, Hook{
			Name: a.Name, SHA256: a.SHA256, trusted: a.Trusted,
			Hook: job.Hook{On: a.On, Run: a.Run, Tools: a.Tools, Argv: a.Argv, MustFire: a.MustFire, OnError: a.OnError},
		})
	}
	return all
}

// Operators are the hooks of the operator's file.
func Operators(all []Hook) []Hook {
	return slices.DeleteFunc(slices.Clone(all), func(h Hook) bool { return !strings.HasPrefix(h.Name, OperatorPrefix) })
}
