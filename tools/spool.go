package tools

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
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

// openSpool creates the file for the complete output of a call. If that fails, the spool keeps the error for close.
func (o *Outputs) openSpool(callID string) *spool {
	limit := cmp.Or(o.FileLimit, DefaultFileLimit)
	opened := &spool{remaining: limit, limit: limit}
	if o.Redact != nil {
		opened.redactor = secrets.NewStream(o.Redact, opened.writeClean)
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

// fileName returns an unused file name for a call's output. The ID comes from the model's API and may contain anything.
// Two calls may have the same ID.
func (o *Outputs) fileName(callID string) string {
	const maxLength = 100
	safe := clip.Name(callID, "_-", '_')
	if safe != callID || safe == "" || len(safe) > maxLength {
		safe = fmt.Sprintf("%s-%.4x", clip.Start(safe, maxLength), sha256.Sum256([]byte(callID)))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.usedNames == nil {
		o.usedNames = make(map[string]int)
	}
	key := strings.ToLower(safe) // some file systems ignore case
	o.usedNames[key]++
	if n := o.usedNames[key]; n > 1 {
		safe = fmt.Sprintf("%s.%d", safe, n)
	}
	return "outputs/" + o.NamePrefix + safe + ".txt"
}

// write writes output that may contain secrets.
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

// writeClean writes text without secrets.
func (s *spool) writeClean(text string) {
	if s.file != nil {
		s.writeFile([]byte(text))
	}
}

// writeFile writes to the file up to the limit. It closes the file at the limit or after an error.
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

// closeFile closes the file, so that nothing more is written.
func (s *spool) closeFile() {
	s.err = errors.Join(s.err, s.file.Close())
	s.file, s.redactor = nil, nil
}

// close writes the rest and closes the file. It returns the first error of the spool. It may be called twice.
func (s *spool) close() error {
	if s.file != nil && s.redactor != nil {
		s.redactor.Flush()
	}
	if s.file != nil {
		s.closeFile()
	}
	return s.err
}

// describePlace returns a text that tells the model where the complete output is.
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
