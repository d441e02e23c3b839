package tree

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Diff writes the plan as a patch for `git apply`. It treats all files as text. A link that becomes
// a file is written as a deletion and an addition.
func (p *Plan) Diff(w io.Writer) error {
	d := &differ{bufio.NewWriter(w)}
	for i := range p.changed {
		d.writeChange(&p.changed[i])
	}
	if err := d.Flush(); err != nil {
		return fmt.Errorf("write diff: %w", err)
	}
	return nil
}

// differ writes diffs. Its writer remembers the first error, which Flush returns.
type differ struct{ *bufio.Writer }

// writeChange writes the diff of a file. A link that becomes a file is a deletion and an addition.
func (d *differ) writeChange(c *change) {
	f := c.file
	switch {
	case f.isLink() && f.exists:
		d.writeDeleted(c.Path, f.before, v4a.Compare(f.original, ""))
		d.writeAdded(c.Path, f, v4a.Compare("", f.content))
	case c.Op == v4a.Add:
		d.writeAdded(c.Path, f, c.diff())
	case c.Op == v4a.Delete:
		d.writeDeleted(c.Path, f.before, c.diff())
	default:
		d.writeUpdated(c)
	}
}

// writeUpdated writes the diff of a changed or moved file.
func (d *differ) writeUpdated(c *change) {
	f, from := c.file, cmp.Or(c.MovedFrom, c.Path)
	d.writeNames(from, c.Path)
	switch {
	case c.MovedFrom != "":
		fmt.Fprintf(d, "similarity index %d%%\nrename from %s\nrename to %s\n", c.diff().Similarity(), gitQuoted(from), gitQuoted(c.Path))
	case gitMode(f.modeBefore()) != gitMode(f.modeAfter()):
		fmt.Fprintf(d, "old mode %s\nnew mode %s\n", gitMode(f.modeBefore()), gitMode(f.modeAfter()))
	}
	d.writeHunks(header("a/", from), header("b/", c.Path), c.diff())
}

func (d *differ) writeAdded(name string, f *file, diff v4a.Diff) {
	d.writeNames(name, name)
	fmt.Fprintf(d, "new file mode %s\n", gitMode(f.modeAfter()))
	d.writeHunks(noFile, header("b/", name), diff)
}

func (d *differ) writeDeleted(name string, before fs.FileInfo, diff v4a.Diff) {
	d.writeNames(name, name)
	fmt.Fprintf(d, "deleted file mode %s\n", gitMode(before.Mode()))
	d.writeHunks(header("a/", name), noFile, diff)
}

func (d *differ) writeNames(from, to string) {
	fmt.Fprintf(d, "diff --git %s %s\n", gitQuoted("a/"+from), gitQuoted("b/"+to))
}

func (d *differ) writeHunks(from, to string, diff v4a.Diff) {
	if diff.Empty() {
		return
	}
	fmt.Fprintf(d, "--- %s\n+++ %s\n", from, to)
	diff.WriteHunks(d.Writer)
}

// noFile is the name for the side on which the file does not exist.
const noFile = "/dev/null"

// header formats a name for the "---" and "+++" lines. A name with a blank gets a final tab,
// because readers could take the text after the blank for a time.
func header(prefix, name string) string {
	name = gitQuoted(prefix + name)
	if strings.Contains(name, " ") {
		name += "\t"
	}
	return name
}

// gitQuoted formats a name like git: as a C string if it contains a control character, a quote or a
// backslash.
func gitQuoted(name string) string {
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

// gitMode returns git's mode of a file.
func gitMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "120000"
	case mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}
