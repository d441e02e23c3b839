package tools

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/policy/secrets"
)

// spool writes the complete output of a call to a file, without secrets, up to a limit.
type spool struct {
	name, path string
	file       io.WriteCloser  // nil if nothing more can be written
	redactor   *secrets.Stream // removes secrets before file; nil if none are removed
	remaining  int64           // how many more bytes may be written
	limit      int64
	full       bool
	err        error
}

// openSpool opens the file for the whole output of a call.
func (o *Outputs) openSpool(callID string) *spool {
	limit := cmp.Or(o.FileLimit, DefaultFileLimit)
	opened := &spool{remaining: limit, limit: limit}
	if o.Redact != nil {
		opened.redactor = &secrets.Stream{Redact: o.Redact, Put: opened.writeClean}
	}
	if o.Create == nil {
		return opened
	}
	name := o.fileName(callID)
	file, path, err := o.Create(name)
	if err != nil {
		opened.err = fmt.Errorf("keep the whole output: %w", err)
		return opened
	}
	opened.file, opened.name, opened.path = file, name, path
	return opened
}

// fileName returns a new file name for a call's output. IDs come from the model's API and may contain
// anything; two calls may have the same ID.
func (o *Outputs) fileName(callID string) string {
	const longest = 100
	safe := strings.Map(func(r rune) rune {
		if isAlphanumeric(r) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, callID)
	if safe != callID || safe == "" || len(safe) > longest {
		safe = fmt.Sprintf("%s-%.4x", safe[:min(len(safe), longest)], sha256.Sum256([]byte(callID)))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.usedNames == nil {
		o.usedNames = make(map[string]int)
	}
	key := strings.ToLower(safe) // some file systems don't tell case
	o.usedNames[key]++
	if n := o.usedNames[key]; n > 1 {
		safe = fmt.Sprintf("%s.%d", safe, n)
	}
	return "outputs/" + o.NamePrefix + safe + ".txt"
}

// write takes raw output.
func (s *spool) write(p []byte) {
	if s.file == nil {
		return
	}
	if s.redactor == nil {
		s.writeFile(p)
		return
	}
	_, _ = s.redactor.Write(p) // it can't fail
}

// writeClean writes redacted text.
func (s *spool) writeClean(text string) {
	if s.file != nil {
		s.writeFile([]byte(text))
	}
}

func (s *spool) writeFile(p []byte) {
	if int64(len(p)) > s.remaining {
		p, s.full = p[:s.remaining], true
	}
	n, err := s.file.Write(p)
	s.remaining -= int64(n)
	if err != nil {
		s.err = fmt.Errorf("keep the whole output: %w", err)
	}
	if s.full || err != nil {
		s.closeFile()
	}
}

func (s *spool) closeFile() {
	s.err = errors.Join(s.err, s.file.Close())
	s.file, s.redactor = nil, nil
}

// close writes the rest. It may be called twice.
func (s *spool) close() error {
	if s.file != nil && s.redactor != nil {
		s.redactor.Flush()
	}
	if s.file != nil {
		s.closeFile()
	}
	return s.err
}

// describePlace describes the place of the whole output.
func (s *spool) describePlace() string {
	switch {
	case s.path == "":
		return "the rest was not kept"
	case s.full:
		return fmt.Sprintf("the first %d bytes are in %s, which read_file reads", s.limit, s.path)
	case s.err != nil:
		return fmt.Sprintf("a part is in %s, which read_file reads", s.path)
	default:
		return fmt.Sprintf("the whole output is in %s, which read_file reads", s.path)
	}
}
