package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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
	clean      *secrets.Stream // removes secrets before file; nil if none are removed
	left       int64           // how many more bytes may be written
	limit      int64
	full       bool
	err        error
}

// spool opens the file for the whole output of a call.
func (o *Outputs) spool(callID string) *spool {
	limit := cmp.Or(o.FileLimit, DefaultFileLimit)
	s := &spool{left: limit, limit: limit}
	if o.Redact != nil {
		s.clean = &secrets.Stream{Redact: o.Redact, Put: s.writeClean}
	}
	if o.Create == nil {
		return s
	}
	name := o.name(callID)
	file, path, err := o.Create(name)
	if err != nil {
		s.err = fmt.Errorf("keep the whole output: %w", err)
		return s
	}
	s.file, s.name, s.path = file, name, path
	return s
}

// name is a file name for a call's output. Ids come from the model's API and
// may hold anything; the same one may come twice.
func (o *Outputs) name(callID string) string {
	const longest = 100
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, callID)
	if safe != callID || safe == "" || len(safe) > longest {
		sum := sha256.Sum256([]byte(callID))
		safe = safe[:min(len(safe), longest)] + "-" + hex.EncodeToString(sum[:4])
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used == nil {
		o.used = make(map[string]int)
	}
	key := strings.ToLower(safe) // some file systems don't tell case
	o.used[key]++
	if n := o.used[key]; n > 1 {
		safe = fmt.Sprintf("%s.%d", safe, n)
	}
	return "outputs/" + o.NamePrefix + safe + ".txt"
}

// write takes raw output.
func (s *spool) write(p []byte) {
	if s.file == nil {
		return
	}
	if s.clean == nil {
		s.emit(p)
		return
	}
	_, _ = s.clean.Write(p) // it can't fail
}

// writeClean writes redacted text.
func (s *spool) writeClean(text string) {
	if s.file != nil {
		s.emit([]byte(text))
	}
}

func (s *spool) emit(p []byte) {
	if int64(len(p)) > s.left {
		p, s.full = p[:s.left], true
	}
	n, err := s.file.Write(p)
	s.left -= int64(n)
	if err != nil {
		s.err = fmt.Errorf("keep the whole output: %w", err)
	}
	if s.full || err != nil {
		s.end()
	}
}

func (s *spool) end() {
	s.err = errors.Join(s.err, s.file.Close())
	s.file, s.clean = nil, nil
}

// close writes the rest. It may be called twice.
func (s *spool) close() error {
	if s.file != nil && s.clean != nil {
		s.clean.Flush()
	}
	if s.file != nil {
		s.end()
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
