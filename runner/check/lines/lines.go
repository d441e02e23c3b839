// Package lines owns reading a git patch into the lines that each file gains and loses. It does not
// know what the lines mean.
package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Bounds on the lines of a patch that are kept. OmittedLines counts further lines.
const (
	maxLines     = 200_000
	maxLineBytes = 4_000 // bytes of a line
)

// Diff is the content of a patch.
type Diff struct {
	Files        []File
	OmittedLines int
}

// File is a file of a patch.
type File struct {
	Path    string // with the change; for a deleted file, the path on the base
	Added   []Line
	Removed []Line
}

// Line is an added or removed line of a file.
type Line struct {
	Number int // from 1: with the change, or on the base for a removed line
	Text   string
	// Before is the last line before it, on the same side, that is not blank, without indentation.
	// Empty at the start of a hunk. Lines continued with a backslash are joined.
	Before string
}

// hunkHead matches the first line of a hunk. Its groups are the numbers of the first lines on both
// sides.
var hunkHead = lazyregexp.New(`^@@ -([0-9]{1,9})(?:,[0-9]+)? \+([0-9]{1,9})(?:,[0-9]+)? @@`)

// Read reads a patch.
func Read(patch io.Reader) (*Diff, error) {
	r := reader{diff: &Diff{}}
	in := bufio.NewReader(patch)
	for {
		line, err := next(in)
		if line != "" || err == nil {
			r.read(line)
		}
		if errors.Is(err, io.EOF) {
			return r.diff, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the patch: %w", err)
		}
	}
}

// next returns the next line without its end, cut after maxLineBytes+1 bytes.
func next(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := maxLineBytes + 1 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimRight(string(line), "\r\n"), err
		}
	}
}

type reader struct {
	diff     *Diff
	file     *File
	inHunk   bool
	old, now int    // the numbers of the next lines on the base and with the change
	oldLast  string // the last lines of both sides that are not blank
	nowLast  string
	kept     int // lines
}

// read reads the next line of the patch. A line in a hunk belongs to the file of the last header.
func (r *reader) read(line string) {
	if m := hunkHead().FindStringSubmatch(line); m != nil && r.file != nil {
		r.old, _ = strconv.Atoi(m[1])
		r.now, _ = strconv.Atoi(m[2])
		r.oldLast, r.nowLast, r.inHunk = "", "", true
		return
	}
	switch {
	case r.inHunk && strings.HasPrefix(line, "+"):
		r.keep(&r.file.Added, Line{r.now, line[1:], r.nowLast})
		r.now++
		remember(&r.nowLast, line[1:])
	case r.inHunk && strings.HasPrefix(line, "-"):
		r.keep(&r.file.Removed, Line{r.old, line[1:], r.oldLast})
		r.old++
		remember(&r.oldLast, line[1:])
	case r.inHunk && strings.HasPrefix(line, " "):
		r.old++
		r.now++
		remember(&r.oldLast, line[1:])
		remember(&r.nowLast, line[1:])
	case strings.HasPrefix(line, "diff --git "):
		r.diff.Files = append(r.diff.Files, File{})
		r.file, r.inHunk = &r.diff.Files[len(r.diff.Files)-1], false
	case !r.inHunk && r.file != nil && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")):
		if path := pathOf(line[4:]); path != "" {
			r.file.Path = path
		}
	}
}

func (r *reader) keep(lines *[]Line, line Line) {
	if r.kept == maxLines {
		r.diff.OmittedLines++
		return
	}
	r.kept++
	*lines = append(*lines, line)
}

// remember sets *last to a line that is not blank. If *last ends with a backslash, the line is
// appended to it.
func remember(last *string, line string) {
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	if begin, isContinued := strings.CutSuffix(*last, `\`); isContinued && len(begin) < maxLineBytes {
		line = begin + line
	}
	*last = line
}

// WithContinued returns the line after the earlier lines that it continues.
func (l Line) WithContinued() string {
	if begin, isContinued := strings.CutSuffix(l.Before, `\`); isContinued {
		return begin + strings.TrimSpace(l.Text)
	}
	return l.Text
}

// pathOf returns the path in a line such as "+++ b/path", which git may quote. It returns "" for
// /dev/null.
func pathOf(name string) string {
	name = strings.TrimSuffix(name, "\t")
	if name == "/dev/null" {
		return ""
	}
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	_, path, _ := strings.Cut(name, "/")
	return path
}
