package v4a

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// contextLines is how many equal lines stand around a difference.
const contextLines = 3

// Diff writes the plan in git's format, as `git apply` reads it. Files are
// compared as text whatever they hold. A rename says where from; a path that
// turns from a link into a file is deleted and created.
func (p *Plan) Diff(w io.Writer) error {
	d := &differ{w: bufio.NewWriter(w)}
	for i := range p.changed {
		d.write(&p.changed[i])
	}
	if err := d.w.Flush(); err != nil {
		return fmt.Errorf("write diff: %w", err)
	}
	return nil
}

// differ writes diffs. Its writer keeps the first error.
type differ struct{ w *bufio.Writer }

func (d *differ) write(c *change) {
	f := c.file
	if f.isLink() && f.exists {
		d.writeReplacedLink(f)
		return
	}
	from := c.Path
	if c.MovedFrom != "" {
		from = c.MovedFrom
	}
	fmt.Fprintf(d.w, "diff --git %s %s\n", quoted("a/"+from), quoted("b/"+c.Path))
	switch {
	case c.Op == Add:
		fmt.Fprintf(d.w, "new file mode %s\n", gitMode(f.modeAfter()))
	case c.Op == Delete:
		fmt.Fprintf(d.w, "deleted file mode %s\n", gitMode(f.before.Mode()))
	case c.MovedFrom != "":
		fmt.Fprintf(d.w, "similarity index %d%%\nrename from %s\nrename to %s\n", f.content.similarity(), quoted(from), quoted(c.Path))
	case gitMode(f.modeBefore()) != gitMode(f.modeAfter()):
		fmt.Fprintf(d.w, "old mode %s\nnew mode %s\n", gitMode(f.modeBefore()), gitMode(f.modeAfter()))
	}
	if len(c.lines) == 0 {
		return
	}
	d.names(header("a/", from, c.Op == Add), header("b/", c.Path, c.Op == Delete))
	d.hunks(f.content.base, f.after(), c.lines)
}

func (d *differ) writeReplacedLink(f *file) {
	name := f.path
	fmt.Fprintf(d.w, "diff --git %s %s\ndeleted file mode 120000\n", quoted("a/"+name), quoted("b/"+name))
	d.names(header("a/", name, false), header("b/", name, true))
	d.hunks(f.content.base, "", []lineRange{{oldTo: len(f.content.base)}})
	fmt.Fprintf(d.w, "diff --git %s %s\nnew file mode %s\n", quoted("a/"+name), quoted("b/"+name), gitMode(f.modeAfter()))
	if f.content.text != "" {
		d.names(header("a/", name, true), header("b/", name, false))
		d.hunks("", f.content.text, []lineRange{{newTo: len(f.content.text)}})
	}
}

func (d *differ) names(from, to string) { fmt.Fprintf(d.w, "--- %s\n+++ %s\n", from, to) }

// header is a name as "---" and "+++" lines have it: a blank in it is followed
// by a tab, so that no reader takes the rest for a time.
func header(prefix, name string, nothing bool) string {
	if nothing {
		return "/dev/null"
	}
	name = quoted(prefix + name)
	if strings.Contains(name, " ") {
		name += "\t"
	}
	return name
}

// quoted is a name as git writes it, in C's way where it holds a control
// character, a quote or a backslash.
func quoted(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F || r == '"' || r == '\\' }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7F:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// gitMode is the mode that git's trees know.
func gitMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "120000"
	case mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// hunks writes the differences, those next to each other together.
func (d *differ) hunks(old, text string, ranges []lineRange) {
	line, at, shift := 1, 0, 0
	for len(ranges) > 0 {
		n := neighbours(old, ranges)
		start := contextBefore(old, ranges[0].oldFrom)
		line += strings.Count(old[at:start], "\n")
		at = start
		shift += d.hunk(old, text, ranges[:n], hunkStart{at: start, line: line, shift: shift})
		ranges = ranges[n:]
	}
}

// neighbours counts the ranges from the first one on that share context.
func neighbours(old string, ranges []lineRange) int {
	n := 1
	for n < len(ranges) && countLines(old[ranges[n-1].oldTo:ranges[n].oldFrom]) <= 2*contextLines {
		n++
	}
	return n
}

// hunkStart is where a hunk begins: at which byte and line of the old text, and
// how many lines further down in the new one.
type hunkStart struct{ at, line, shift int }

// hunk writes ranges with their context and returns by how many lines the text
// grows in them.
func (d *differ) hunk(old, text string, ranges []lineRange, start hunkStart) int {
	end := contextAfter(old, ranges[len(ranges)-1].oldTo)
	removed := countLines(old[start.at:end])
	added := removed
	for _, r := range ranges {
		added += countLines(text[r.newFrom:r.newTo]) - countLines(old[r.oldFrom:r.oldTo])
	}
	fmt.Fprintf(d.w, "@@ -%s +%s @@\n", extent(start.line, removed), extent(start.line+start.shift, added))
	at := start.at
	for _, r := range ranges {
		d.lines(" ", old[at:r.oldFrom])
		d.lines("-", old[r.oldFrom:r.oldTo])
		d.lines("+", text[r.newFrom:r.newTo])
		at = r.oldTo
	}
	d.lines(" ", old[at:end])
	return added - removed
}

// extent is a run of lines in a hunk's header; an empty one goes by the line
// before it.
func extent(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

func (d *differ) lines(prefix, text string) {
	for line := range strings.Lines(text) {
		d.w.WriteString(prefix)
		d.w.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			d.w.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
