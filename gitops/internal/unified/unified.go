// Package unified writes the change of a file as git's unified diff, and counts
// its lines, where there is no git program to do it. It knows objects and nothing
// of checkouts.
package unified

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/diff"
	linediff "github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

const (
	diffedFile   = 8 << 20 // bytes; a larger file is only named, as a binary one is
	comparedFile = 1 << 20 // bytes; of a larger file all lines are taken for changed
	binaryStart  = 8000    // bytes in which git looks for a NUL
	diffTimeout  = 5 * time.Second
)

// Write writes the patch of one file. What changes its type goes and comes
// again, as git writes it.
func Write(w io.Writer, s *objects.Store, d objects.Difference) error {
	if d.ChangesType() {
		if err := Write(w, s, objects.Difference{Path: d.Path, Old: d.Old}); err != nil {
			return err
		}
		return Write(w, s, objects.Difference{Path: d.Path, New: d.New})
	}
	fp, err := patchOf(s, d)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, patchHeader(d, fp)); err != nil {
		return err
	}
	return diff.NewUnifiedEncoder(w, diff.DefaultContextLines).Encode(fp)
}

// filePatch is the chunks of one file's patch. It is a go-git patch of one
// file without a name, whose header is therefore left to us.
type filePatch struct {
	chunks []diff.Chunk
	binary bool
}

func (p filePatch) FilePatches() []diff.FilePatch { return []diff.FilePatch{p} }
func (p filePatch) Message() string               { return "" }
func (p filePatch) IsBinary() bool                { return p.binary }
func (p filePatch) Files() (from, to diff.File)   { return nil, nil }
func (p filePatch) Chunks() []diff.Chunk          { return p.chunks }

type chunk struct {
	text string
	op   diff.Operation
}

func (c chunk) Content() string      { return c.text }
func (c chunk) Type() diff.Operation { return c.op }

func patchOf(s *objects.Store, d objects.Difference) (filePatch, error) {
	old, binaryOld, err := side(s, d.Old)
	if err != nil {
		return filePatch{}, err
	}
	now, binaryNew, err := side(s, d.New)
	if err != nil {
		return filePatch{}, err
	}
	if binaryOld || binaryNew {
		return filePatch{binary: true}, nil
	}
	return filePatch{chunks: chunks(old, now)}, nil
}

func side(s *objects.Store, e objects.Entry) (text string, binary bool, err error) {
	switch e.Mode {
	case 0:
		return "", false, nil
	case index.Gitlink:
		return "Subproject commit " + e.ID.String() + "\n", false, nil
	}
	data, err := s.BlobBytes(e.ID, diffedFile)
	switch {
	case errors.As(err, new(*objects.TooLargeError)):
		return "", true, nil
	case err != nil:
		return "", false, err
	}
	return string(data), IsBinary(data), nil
}

// IsBinary says whether git would take a file for a binary one.
func IsBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryStart)], 0) >= 0
}

var operations = map[diffmatchpatch.Operation]diff.Operation{
	diffmatchpatch.DiffEqual: diff.Equal, diffmatchpatch.DiffInsert: diff.Add, diffmatchpatch.DiffDelete: diff.Delete,
}

func chunks(old, now string) []diff.Chunk {
	var list []diff.Chunk
	add := func(text string, op diff.Operation) {
		if text != "" {
			list = append(list, chunk{text, op})
		}
	}
	if len(old) > comparedFile || len(now) > comparedFile || old == "" || now == "" {
		add(old, diff.Delete)
		add(now, diff.Add)
		return list
	}
	for _, part := range linediff.DoWithTimeout(old, now, diffTimeout) {
		add(part.Text, operations[part.Type])
	}
	return list
}

// patchHeader writes what stands above the hunks of a file
// (git-diff(1), "Generating patch text with -p").
func patchHeader(d objects.Difference, fp filePatch) string {
	var b strings.Builder
	a, z := quotePath("a/"+d.Path), quotePath("b/"+d.Path)
	fmt.Fprintf(&b, "diff --git %s %s\n", a, z)
	mode := ""
	switch {
	case d.Old.Mode == 0:
		fmt.Fprintf(&b, "new file mode %06o\n", d.New.Mode)
		a = "/dev/null"
	case d.New.Mode == 0:
		fmt.Fprintf(&b, "deleted file mode %06o\n", d.Old.Mode)
		z = "/dev/null"
	case d.Old.Mode != d.New.Mode:
		fmt.Fprintf(&b, "old mode %06o\nnew mode %06o\n", d.Old.Mode, d.New.Mode)
	default:
		mode = fmt.Sprintf(" %06o", d.New.Mode)
	}
	if d.Old.ID != d.New.ID {
		fmt.Fprintf(&b, "index %s..%s%s\n", d.Old.ID, d.New.ID, mode)
	}
	switch {
	case fp.binary:
		fmt.Fprintf(&b, "Binary files %s and %s differ\n", a, z)
	case len(fp.chunks) > 0 && d.Old.ID != d.New.ID:
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", withTab(a), withTab(z))
	}
	return b.String()
}

// withTab ends a name that has a space in it, as git does for other programs.
func withTab(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// quotePath quotes a path as git does with core.quotePath.
func quotePath(path string) string {
	if strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0 {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// CountLines is how many lines a file gained and lost, none where it is binary.
func CountLines(s *objects.Store, d objects.Difference) (insertions, deletions int, binary bool, err error) {
	fp, err := patchOf(s, d)
	for _, c := range fp.chunks {
		switch c.Type() {
		case diff.Add:
			insertions += lines(c.Content())
		case diff.Delete:
			deletions += lines(c.Content())
		}
	}
	return insertions, deletions, fp.binary, err
}

func lines(text string) int {
	n := 0
	for range strings.Lines(text) {
		n++
	}
	return n
}
