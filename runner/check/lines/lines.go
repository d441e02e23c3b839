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
		line, err := nextLine(in)
		if line != "" || err == nil {
			r.readLine(line)
		}
		if errors.Is(err, io.EOF) {
			return r.diff, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the patch: %w", err)
		}
	}
}

// nextLine returns the next line without its end, cut after maxLineBytes+1 bytes.
func nextLine(in *bufio.Reader) (string, error) {
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
	diff                 *Diff
	file                 *File
	inHunk               bool
	oldNumber, newNumber int    // the numbers of the next lines on the base and with the change
	oldLast              string // the last lines of both sides that are not blank
	newLast              string
	kept                 int // lines
}

// readLine reads the next line of the patch. A line in a hunk belongs to the file of the last header.
func (r *reader) readLine(line string) {
	if m := hunkHead().FindStringSubmatch(line); m != nil && r.file != nil {
		r.oldNumber, _ = strconv.Atoi(m[1])
		r.newNumber, _ = strconv.Atoi(m[2])
		r.oldLast, r.newLast, r.inHunk = "", "", true
		return
	}
	switch {
	case r.inHunk && strings.HasPrefix(line, "+"):
		r.keep(&r.file.Added, Line{r.newNumber, line[1:], r.newLast})
		r.newNumber++
		rememberLast(&r.newLast, line[1:])
	case r.inHunk && strings.HasPrefix(line, "-"):
		r.keep(&r.file.Removed, Line{r.oldNumber, line[1:], r.oldLast})
		r.oldNumber++
		rememberLast(&r.oldLast, line[1:])
	case r.inHunk && strings.HasPrefix(line, " "):
		r.oldNumber++
		r.newNumber++
		rememberLast(&r.oldLast, line[1:])
		rememberLast(&r.newLast, line[1:])
	case strings.HasPrefix(line, "diff --git "):
		r.diff.Files = append(r.diff.Files, File{})
		r.file, r.inHunk = &r.diff.Files[len(r.diff.Files)-1], false
	case !r.inHunk && r.file != nil && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")):
		if path := pathInHeader(line[4:]); path != "" {
			r.file.Path = path
		}
	}
}

// keep appends a line to lines, or only counts it if there are too many.
func (r *reader) keep(lines *[]Line, line Line) {
	if r.kept == maxLines {
		r.diff.OmittedLines++
		return
	}
	r.kept++
	*lines = append(*lines, line)
}

// rememberLast sets *last to a line that is not blank. If *last ends with a backslash, the line is
// appended to it.
func rememberLast(last *string, line string) {
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	if begin, isContinued := strings.CutSuffix(*last, `\`); isContinued && len(begin) < maxLineBytes {
		line = begin + line
	}
	*last = line
}

// WithContinued returns the line, preceded by the lines that end with a backslash before it.
func (l Line) WithContinued() string {
	if begin, isContinued := strings.CutSuffix(l.Before, `\`); isContinued {
		return begin + strings.TrimSpace(l.Text)
	}
	return l.Text
}

// pathInHeader returns the path in a line such as "+++ b/path", which git may quote. It returns "" for
// /dev/null.
func pathInHeader(name string) string {
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
