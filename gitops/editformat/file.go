package editformat

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
)

const byteOrderMark = "\uFEFF"

// file is the text of a file as lines, which can be removed and inserted.
type file struct {
	*find.Text
	path    string
	exists  bool
	mark    string // the byte order mark, or ""
	ending  string // ending of the first line, or LF
	ended   bool   // the last line has an ending
	endings []string
	was     find.ID // number of lines before all edits
	size    int     // upper bound of the text's size in bytes, including removed lines
}

// newFile splits the text of a file into lines for s. It records the byte order mark and the line
// endings. text is nil for a missing file.
func newFile(path string, text *string, s *find.Seeker) *file {
	f := &file{path: path, ending: "\n", ended: true, endings: make([]string, 1)}
	if text == nil {
		f.Text = s.Text(0)
		return f
	}
	f.exists, f.size = true, len(*text)+1
	rest, marked := strings.CutPrefix(*text, byteOrderMark)
	if marked {
		f.mark = byteOrderMark
	}
	f.ended = rest == "" || strings.HasSuffix(rest, "\n")
	f.Text = s.Text(strings.Count(rest, "\n") + 1)
	for whole := range strings.Lines(rest) {
		line, ending := strings.TrimSuffix(whole, "\n"), ""
		if len(line) < len(whole) {
			line = strings.TrimSuffix(line, "\r")
			ending = whole[len(line):]
		}
		f.Insert(0, line)
		f.endings = append(f.endings, ending)
	}
	f.was = find.ID(f.Len())
	if f.Len() > 0 && f.endings[1] != "" {
		f.ending = f.endings[1]
	}
	return f
}

// text returns the current text.
func (f *file) text() string {
	var b strings.Builder
	b.Grow(f.size)
	b.WriteString(f.mark)
	for id := f.Next(0); id != 0; id = f.Next(id) {
		b.WriteString(f.Line(id))
		switch {
		case f.Next(id) == 0 && !f.ended: // the last line has no ending
		case f.endings[id] == "":
			b.WriteString(f.ending)
		default:
			b.WriteString(f.endings[id])
		}
	}
	return b.String()
}

// texts returns the current lines.
func (f *file) texts() []string {
	texts := make([]string, 0, f.Len())
	for id := f.Next(0); id != 0; id = f.Next(id) {
		texts = append(texts, f.Line(id))
	}
	return texts
}

// insert inserts a line above another one.
func (f *file) insert(above find.ID, text, ending string) {
	f.Insert(above, text)
	f.endings = append(f.endings, ending)
	f.size += len(text) + 1
}
