package editformat

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// readDiff reads the hunks of a diff between two fence lines. If the diff names no file, it uses a
// path above the fence.
func (p *parser) readDiff(open, end int) {
	d := &diffReader{parser: p, path: p.pathAbove(open)}
	for i := open + 1; i < end; {
		i += d.readAt(i, end)
	}
	d.finishHunk()
	d.finishFile()
}

// diffReader parses a diff line by line. A hunk ends at the next hunk or file.
type diffReader struct {
	*parser
	path    string
	act     act
	header  int  // line, from 1, of headers without a hunk so far; or 0
	skipped bool // the headers are unclear, so their hunks are ignored
	from    int
	hunk    Edit
}

// readAt reads the line at i, or the two headers there, and returns the number of lines read.
func (d *diffReader) readAt(i, end int) int {
	line := d.lines[i]
	switch {
	case d.isHeader(i, end):
		d.finishHunk()
		d.finishFile()
		d.beginFile(i)
		return 2
	case strings.HasPrefix(line, "@@"):
		d.finishHunk()
	case strings.HasPrefix(line, `\`):
		d.recordMissingNewline()
	case d.isPrelude(line):
		d.finishHunk()
		if slices.ContainsFunc([]string{"rename ", "copy ", "GIT binary patch", "Binary files "}, func(start string) bool { return strings.HasPrefix(line, start) }) {
			d.problem(i, "%.100q cannot be applied; a diff changes lines of a file, or makes or removes one", line)
		}
	default:
		d.addLine(i, line)
	}
	return 1
}

// isHeader reports whether two lines are the headers of a file. Inside a hunk they could be changed
// lines, so a line "@@" must follow there.
func (d *diffReader) isHeader(i, end int) bool {
	if i+1 >= end || !strings.HasPrefix(d.lines[i], "--- ") || !strings.HasPrefix(d.lines[i+1], "+++ ") {
		return false
	}
	isInHunk := !isBlankHunk(d.hunk.lines)
	return !isInHunk || i+2 < end && strings.HasPrefix(d.lines[i+2], "@@")
}

// isBlankHunk reports whether a hunk has only blank context lines.
func isBlankHunk(lines []v4a.Line) bool {
	return !slices.ContainsFunc(lines, func(l v4a.Line) bool { return l.Kind != v4a.Keep || strings.TrimSpace(l.Text) != "" })
}

const nowhere = "/dev/null"

// beginFile reads the two headers of a file. Headers without one clear path are a problem.
func (d *diffReader) beginFile(i int) {
	oldPath, newPath := withoutGitPrefixes(headerPath(d.lines[i]), headerPath(d.lines[i+1]))
	d.act, d.path, d.skipped, d.header = change, cleanPath(newPath), false, i+1
	if newPath == nowhere {
		d.act, d.path = remove, cleanPath(oldPath)
	}
	namesTwo := d.act == change && oldPath != newPath && oldPath != nowhere
	if d.path == "" || namesTwo {
		d.skipped = true
		d.problem(i, "the headers of the diff name no file, or two; write --- a/path and +++ b/path, with the same path")
	}
}

// withoutGitPrefixes removes git's prefixes a/ and b/ if every path has its own; a missing file has none.
func withoutGitPrefixes(oldPath, newPath string) (oldName, newName string) {
	a, hasA := strings.CutPrefix(oldPath, "a/")
	b, hasB := strings.CutPrefix(newPath, "b/")
	switch {
	case hasA && hasB:
		return a, b
	case hasA && newPath == nowhere:
		return a, newPath
	case hasB && oldPath == nowhere:
		return oldPath, b
	}
	return oldPath, newPath
}

// finishFile reports a problem for a file without a hunk.
func (d *diffReader) finishFile() {
	if d.header > 0 && !d.skipped {
		d.problem(d.header-1, "the diff names %s and has no hunk for it; a removed file has all of its lines with -", d.path)
	}
	d.header = 0
}

// headerPath returns the path in a header line, without the time after a tab.
func headerPath(line string) string {
	path, _, _ := strings.Cut(line[4:], "\t")
	return strings.Trim(strings.TrimSpace(path), `"`)
}

// isPrelude reports whether a line is one of those that git writes above the headers of a file.
func (d *diffReader) isPrelude(line string) bool {
	looksLikeOne := slices.ContainsFunc([]string{
		"diff --git ", "index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ", "similarity index ",
		"rename ", "copy ", "GIT binary patch", "Binary files ",
	}, func(start string) bool { return strings.HasPrefix(line, start) })
	if !looksLikeOne {
		return false
	}
	// In a hunk with content, such a line is content too.
	return isBlankHunk(d.hunk.lines) || strings.HasPrefix(line, "diff --git ")
}

// addLine adds line i of the answer to the hunk. A line without a sign is a context line whose
// leading blank is missing. hunk.raw takes the leading blank of a context line as a part of
// its text.
func (d *diffReader) addLine(i int, line string) {
	if len(d.hunk.lines) == 0 {
		d.from = i
	}
	l := v4a.Line{Kind: v4a.Keep, Text: line} // a context line without its leading blank
	if line != "" && strings.ContainsRune("+- ", rune(line[0])) {
		l = v4a.Line{Kind: v4a.Kind(line[0]), Text: line[1:]}
	}
	d.hunk.lines = append(d.hunk.lines, l)
	if l.Kind == v4a.Keep {
		l.Text = line
	}
	d.hunk.raw = append(d.hunk.raw, l)
}

// recordMissingNewline handles the line "\ No newline at end of file".
func (d *diffReader) recordMissingNewline() {
	if len(d.hunk.lines) == 0 {
		return
	}
	kind := d.hunk.lines[len(d.hunk.lines)-1].Kind
	d.hunk.wasUnended = d.hunk.wasUnended || kind != v4a.Insert
	d.hunk.isUnended = d.hunk.isUnended || kind != v4a.Remove
}

// finishHunk adds the hunk to the answer, unless it changes nothing or its file is skipped. A hunk whose old
// lines are all blank becomes a pure insertion.
func (d *diffReader) finishHunk() {
	hunk := d.hunk
	d.hunk = Edit{}
	changes := slices.ContainsFunc(hunk.lines, func(l v4a.Line) bool { return l.Kind != v4a.Keep })
	if d.skipped || !changes {
		return
	}
	if isBlank(v4a.OldLines(hunk.lines)) {
		hunk.lines = slices.DeleteFunc(hunk.lines, func(l v4a.Line) bool { return l.Kind == v4a.Keep })
		hunk.raw = nil
	}
	hunk.act, d.header = d.act, 0
	d.addEdit(d.from, d.path, hunk)
}
