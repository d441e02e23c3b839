// Package eol converts line endings between the work tree and the repository
// as git does, from the attributes text and eol and the settings core.autocrlf
// and core.eol (gitattributes(5), "End-of-line conversion"). It works on
// streams: no file is held in memory for its sake.
package eol

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/gitops/rules"
)

// Settings is the part of git's configuration that decides about line endings.
type Settings struct {
	AutoCRLF string // "true", "input" or anything else for false
	EOL      string // "crlf", "lf" or anything else for native
}

// crlf says that text files get CRLF in the work tree.
func (s Settings) crlf() bool {
	switch s.AutoCRLF {
	case "true":
		return true
	case "input":
		return false
	}
	return s.EOL == "crlf"
}

// Action is what happens to the line endings of one path.
type Action struct {
	convert bool // false: bytes stay as they are
	guess   bool // only when the content looks like text
	crlf    bool // the work tree has CRLF
}

// Converts says that there is anything to do.
func (a Action) Converts() bool { return a.convert }

// ToWorktree says that a checkout may change bytes.
func (a Action) ToWorktree() bool { return a.convert && a.crlf }

// Guesses says that the content decides, and so the content that the index
// holds already: a file committed with CRLF keeps it.
func (a Action) Guesses() bool { return a.convert && a.guess }

func (s Settings) Decide(attrs rules.Resolved) Action {
	text := textAttribute(attrs)
	if text.IsUnset() {
		return Action{}
	}
	guess := text.Text() == "auto"
	switch attrs["eol"].Text() {
	case "lf":
		return Action{convert: true, guess: guess}
	case "crlf":
		return Action{convert: true, guess: guess, crlf: true}
	}
	switch {
	case text.Text() == "input":
		return Action{convert: true}
	case guess, text.IsSet():
		return Action{convert: true, guess: guess, crlf: s.crlf()}
	case s.AutoCRLF == "true", s.AutoCRLF == "input":
		return Action{convert: true, guess: true, crlf: s.crlf()}
	}
	return Action{}
}

// textAttribute falls back to the older name of the attribute, "crlf".
func textAttribute(attrs rules.Resolved) rules.Value {
	v := attrs["text"]
	if v.IsSet() || v.IsUnset() || v.Text() == "auto" || v.Text() == "input" {
		return v
	}
	return attrs["crlf"]
}

// Content is what a look at the bytes of a file tells.
type Content struct {
	Size                int64
	NUL, LoneCR, LoneLF int64
	CRLF                int64
	printable, strange  int64
}

// Binary says that git takes the content for binary when it has to guess.
func (c Content) Binary() bool {
	return c.LoneCR > 0 || c.NUL > 0 || c.printable>>7 < c.strange
}

// Look reads r to its end.
func Look(r io.Reader) (Content, error) {
	var c Content
	buf := make([]byte, 32<<10)
	cr := false // the byte before was a CR
	last := byte(0)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			cr = c.count(b, cr)
			last = b
		}
		c.Size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, fmt.Errorf("read for line endings: %w", err)
		}
	}
	if cr {
		c.LoneCR++
	}
	if last == '\x1a' && c.Size > 0 {
		c.strange-- // the end-of-file mark of DOS
	}
	return c, nil
}

func (c *Content) count(b byte, cr bool) (isCR bool) {
	if cr && b != '\n' {
		c.LoneCR++
	}
	switch {
	case b == '\r':
		return true
	case b == '\n' && cr:
		c.CRLF++
	case b == '\n':
		c.LoneLF++
	case b == 0:
		c.NUL++
		c.strange++
	case b == '\b', b == '\t', b == '\x1b', b == '\f':
		c.printable++
	case b < ' ', b == 127:
		c.strange++
	default:
		c.printable++
	}
	return false
}

// Strips says whether CRs are taken out on the way into the repository.
// indexed is what the index holds of the path, nil when nothing.
func (a Action) Strips(content Content, indexed *Content) bool {
	if !a.convert || content.CRLF == 0 {
		return false
	}
	if !a.guess {
		return true
	}
	if content.Binary() {
		return false
	}
	return indexed == nil || indexed.CRLF == 0 || indexed.Binary()
}

// Adds says whether CRs are put in on the way into the work tree.
func (a Action) Adds(content Content) bool {
	if !a.ToWorktree() || content.LoneLF == 0 {
		return false
	}
	if !a.guess {
		return true
	}
	return content.CRLF == 0 && !content.Binary()
}

// ToLF reads r with every CRLF as LF.
func ToLF(r io.Reader) io.Reader { return bytewise{toLF{bufio.NewReaderSize(r, 32<<10)}} }

// ToCRLF reads r with every LF that has no CR before it as CRLF.
func ToCRLF(r io.Reader) io.Reader { return bytewise{&toCRLF{r: bufio.NewReaderSize(r, 32<<10)}} }

// bytewise reads what is given out byte by byte. An error is kept back until the
// bytes before it were taken.
type bytewise struct{ from io.ByteReader }

func (b bytewise) Read(p []byte) (n int, err error) {
	for ; n < len(p); n++ {
		if p[n], err = b.from.ReadByte(); err != nil {
			break
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, err
}

type toLF struct{ r *bufio.Reader }

func (t toLF) ReadByte() (byte, error) {
	c, err := t.r.ReadByte()
	if c == '\r' {
		if next, err := t.r.Peek(1); err == nil && next[0] == '\n' {
			return t.r.ReadByte()
		}
	}
	return c, err
}

type toCRLF struct {
	r       *bufio.Reader
	before  byte
	pending bool // an LF, whose CR has been given out
}

func (t *toCRLF) ReadByte() (c byte, err error) {
	if t.pending {
		t.pending, t.before = false, '\n'
		return '\n', nil
	}
	c, err = t.r.ReadByte()
	if err == nil && c == '\n' && t.before != '\r' {
		t.pending = true
		c = '\r'
	}
	t.before = c
	return c, err
}
