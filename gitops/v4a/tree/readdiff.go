package tree

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Diffs are the file changes in a git diff.
type Diffs []fileDiff

// fileDiff is the change of one file.
type fileDiff struct {
	path      string
	new, gone bool
	hunks     []diffHunk
}

// diffHunk replaces lines. Lines include their endings.
type diffHunk struct {
	at       int // line of the old file, from 0
	old, now []string
}

// ParseDiff parses a diff written by [Plan.Diff]. It refuses renames, mode changes and binary
// files, because plans of [NewRewrite] have none.
func ParseDiff(text string) (Diffs, error) {
	r := &diffReader{rest: slices.Collect(strings.Lines(text))}
	for len(r.rest) > 0 {
		if err := r.file(); err != nil {
			return nil, fmt.Errorf("line %d of the diff: %w", r.line, err)
		}
	}
	return r.files, nil
}

// Paths returns the paths of the files.
func (d Diffs) Paths() []string {
	paths := make([]string, len(d))
	for i, f := range d {
		paths[i] = f.path
	}
	return paths
}

// Apply returns the new texts of the files. A hunk applies at its line number. If it does not fit
// there, it must fit exactly one place below the previous hunk.
func (d Diffs) Apply(was Texts) (Texts, error) {
	now := Texts{}
	for _, f := range d {
		text, err := f.apply(was[f.path])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		now[f.path] = text
	}
	return now, nil
}

// apply returns the file's new text, or nil if the diff deletes the file. was is nil for a missing
// file.
func (f fileDiff) apply(was *string) (*string, error) {
	switch {
	case f.new && was != nil:
		return nil, errors.New("the file is there already")
	case !f.new && was == nil:
		return nil, errors.New("there is no such file")
	}
	var old []string
	if was != nil {
		old = slices.Collect(strings.Lines(*was))
	}
	var b strings.Builder
	done := 0 // number of old lines handled
	for i, h := range f.hunks {
		at, found := h.place(old, done)
		if !found {
			return nil, fmt.Errorf("hunk %d expects lines that are not there, or at several places", i+1)
		}
		writeLines(&b, append(old[done:at:at], h.now...))
		done = at + len(h.old)
	}
	writeLines(&b, old[done:])
	text := b.String()
	if !f.gone {
		return &text, nil
	}
	if text != "" {
		return nil, errors.New("it has more lines than those that are to go")
	}
	return nil, nil
}

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line)
	}
}

// place finds the old lines of a hunk, at line from or below. found is false if they are nowhere, or at several
// places of which none has the hunk's line number.
func (h diffHunk) place(lines []string, from int) (at int, found bool) {
	if h.at >= from && h.fits(lines, h.at) {
		return h.at, true
	}
	if len(h.old) == 0 {
		return 0, false
	}
	for i := from; i+len(h.old) <= len(lines); i++ {
		if !h.fits(lines, i) {
			continue
		}
		if found {
			return 0, false
		}
		at, found = i, true
	}
	return at, found
}

func (h diffHunk) fits(lines []string, at int) bool {
	return at+len(h.old) <= len(lines) && slices.Equal(lines[at:at+len(h.old)], h.old)
}

// diffReader parses a diff line by line.
type diffReader struct {
	rest  []string
	line  int // number of the last line read
	files Diffs
}

// next returns the next line without its ending.
func (r *diffReader) next() string {
	line := r.rest[0]
	r.rest, r.line = r.rest[1:], r.line+1
	return strings.TrimSuffix(line, "\n")
}

// take reads the next line if it starts with prefix, and returns the rest of the line.
func (r *diffReader) take(prefix string) (string, bool) {
	if len(r.rest) == 0 || !strings.HasPrefix(r.rest[0], prefix) {
		return "", false
	}
	return strings.TrimPrefix(r.next(), prefix), true
}

// file reads the headers and hunks of one file.
func (r *diffReader) file() error {
	names, ok := r.take("diff --git ")
	if !ok {
		r.next()
		return errors.New("a file begins with \"diff --git\"")
	}
	path, err := bothNames(names)
	if err != nil {
		return err
	}
	f := fileDiff{path: path}
	if _, f.new = r.take("new file mode 100644"); !f.new {
		_, f.gone = r.take("deleted file mode 100")
	}
	if _, ok := r.take("--- "); ok {
		if _, ok := r.take("+++ "); !ok {
			return errors.New("\"---\" without \"+++\"")
		}
		for len(r.rest) > 0 && strings.HasPrefix(r.rest[0], "@@ ") {
			h, err := r.hunk()
			if err != nil {
				return err
			}
			f.hunks = append(f.hunks, h)
		}
	}
	r.files = append(r.files, f)
	return nil
}

// bothNames returns the path in a "diff --git" line, which must contain the same path twice: x.go for
// "a/x.go b/x.go".
func bothNames(names string) (string, error) {
	half := names[:max(len(names)-1, 0)/2]
	if names != half+" "+strings.Replace(half, "a/", "b/", 1) {
		return "", errors.New("the file has two names")
	}
	if !strings.HasPrefix(half, `"`) {
		return strings.TrimPrefix(half, "a/"), nil
	}
	path, err := strconv.Unquote(half)
	if err != nil {
		return "", fmt.Errorf("read the name %s: %w", half, err)
	}
	return strings.TrimPrefix(path, "a/"), nil
}

// hunk reads one hunk. Its header gives the number of lines that follow.
func (r *diffReader) hunk() (h diffHunk, err error) {
	var old, now int
	head := strings.Fields(r.next())
	if len(head) < 4 {
		return h, errors.New("a hunk begins with \"@@ -line,count +line,count @@\"")
	}
	if h.at, old, err = extentOf(head[1], "-"); err != nil {
		return h, err
	}
	if _, now, err = extentOf(head[2], "+"); err != nil {
		return h, err
	}
	for len(h.old) < old || len(h.now) < now {
		if len(r.rest) == 0 {
			return h, errors.New("the hunk has fewer lines than it says")
		}
		line := r.next() + "\n"
		if _, ok := r.take(`\ `); ok {
			line = strings.TrimSuffix(line, "\n")
		}
		switch {
		case strings.HasPrefix(line, " "):
			h.old, h.now = append(h.old, line[1:]), append(h.now, line[1:])
		case strings.HasPrefix(line, "-"):
			h.old = append(h.old, line[1:])
		case strings.HasPrefix(line, "+"):
			h.now = append(h.now, line[1:])
		default:
			return h, errors.New("a line of a hunk begins with \" \", \"-\" or \"+\"")
		}
	}
	return h, nil
}

// extentOf parses the range "-line,count" of a hunk's header. It returns the index of the first
// line, from 0. An empty range has the number of the line before it.
func extentOf(text, sign string) (at, count int, err error) {
	text, signed := strings.CutPrefix(text, sign)
	from, many, counted := strings.Cut(text, ",")
	if !counted {
		many = "1"
	}
	at, atErr := strconv.Atoi(from)
	count, countErr := strconv.Atoi(many)
	isValid := signed && atErr == nil && countErr == nil && at >= 0 && count >= 0
	if !isValid {
		return 0, 0, fmt.Errorf("%q is no place of a hunk", text)
	}
	if count > 0 {
		at--
	}
	return at, count, nil
}
