package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// spoolWindow is how much raw output a spool gathers before it redacts and
	// writes it, and spoolOverlap how much of that it holds back, so that a
	// secret that is still being printed is seen whole.
	spoolWindow  = 128 << 10
	spoolOverlap = 16 << 10
	// spoolPatience is how much it gathers at most when no place to cut is found.
	spoolPatience = 1 << 20
	// cutAttempts bounds the search for that place.
	cutAttempts = 8
)

// spool writes a whole output to the store, without its secrets, up to a limit.
type spool struct {
	name, path string
	file       io.WriteCloser // nil when nothing can be kept any more
	redact     func(string) string
	pending    []byte // raw, not yet written
	left       int64  // bytes that may still be written
	limit      int64
	full       bool
	err        error
}

// spool opens the file for the whole output of a call.
func (o *Outputs) spool(callID string) *spool {
	s := &spool{redact: o.Redact, left: o.fileLimit(), limit: o.fileLimit()}
	if o.Store == nil {
		return s
	}
	name := o.name(callID)
	file, path, err := o.Store.Create(name)
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
	return "outputs/" + safe + ".txt"
}

// write takes raw output.
func (s *spool) write(p []byte) {
	if s.file == nil {
		return
	}
	if s.redact == nil {
		s.emit(p)
		return
	}
	s.pending = append(s.pending, p...)
	if len(s.pending) < spoolWindow {
		return
	}
	n := s.cutPoint()
	if n == 0 {
		return
	}
	if s.emit([]byte(s.redact(string(s.pending[:n])))); s.file != nil {
		s.pending = append(s.pending[:0], s.pending[n:]...)
	}
}

// writeClean takes text that is redacted already.
func (s *spool) writeClean(text string) {
	if s.file != nil {
		s.emit([]byte(text))
	}
}

// cutPoint finds where pending can be cut in two that are redacted one by one:
// nothing was found across the cut when the parts give the same as the whole. It is
// 0 when there is no such place yet.
func (s *spool) cutPoint() int {
	whole := s.redact(string(s.pending))
	end := len(s.pending) - spoolOverlap
	for range cutAttempts {
		n := bytes.LastIndexByte(s.pending[:end], '\n') + 1
		if n == 0 {
			break
		}
		if s.redact(string(s.pending[:n]))+s.redact(string(s.pending[n:])) == whole {
			return n
		}
		end = n - 1
	}
	if len(s.pending) >= spoolPatience {
		return len(s.pending) - spoolOverlap
	}
	return 0
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
		s.err = errors.Join(s.err, s.file.Close())
		s.file, s.pending = nil, nil
	}
}

// close writes what is left. It may be called twice.
func (s *spool) close() error {
	if s.file != nil && len(s.pending) > 0 {
		s.emit([]byte(s.redact(string(s.pending))))
	}
	if s.file != nil {
		s.err = errors.Join(s.err, s.file.Close())
		s.file, s.pending = nil, nil
	}
	return s.err
}

// kept says where the whole output is.
func (s *spool) kept() string {
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
