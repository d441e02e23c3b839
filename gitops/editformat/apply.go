package editformat

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/charset"
	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Apply returns the new texts of the edited files; nil deletes a file. before has the texts of all
// [Paths], nil for missing files. notes describe tolerated mistakes. If any block does not fit,
// Apply returns a [*MismatchError] and no texts.
//
// Each block applies to the result of the ones before.
func Apply(f Format, edits []Edit, before map[string]*string) (after map[string]*string, notes []string, err error) {
	a := &applier{format: f, before: before, Seeker: newSeeker(edits), files: map[string]*file{}, done: map[string]int{}}
	mismatch := &MismatchError{}
	for i := range edits {
		if reason := a.apply(&edits[i]); reason != "" {
			mismatch.Misfit = append(mismatch.Misfit, Misfit{edits[i].Number, edits[i].Line, edits[i].Path, reason})
			continue
		}
		mismatch.Fits = append(mismatch.Fits, edits[i].Number)
	}
	if len(mismatch.Misfit) > 0 {
		return nil, nil, mismatch
	}
	return a.changedTexts(), a.notes, nil
}

// applier applies blocks to files in memory.
type applier struct {
	*find.Seeker
	format  Format
	before  map[string]*string
	files   map[string]*file
	done    map[string]int // number of the block that was applied, by comparableForm
	misfits int            // number of misfits explained with their nearest lines
	notes   []string
}

// maxNotes is the largest number of notes.
const maxNotes = 8

func (a *applier) note(format string, args ...any) {
	if len(a.notes) < maxNotes {
		a.notes = append(a.notes, fmt.Sprintf(format, args...))
	}
}

// file returns the file at a path, with the changes so far.
func (a *applier) file(path string) *file {
	if a.files[path] == nil {
		a.files[path] = newFile(path, a.before[path], a.Seeker)
	}
	return a.files[path]
}

// changedTexts returns the texts that differ from before. Nil means a deleted file.
func (a *applier) changedTexts() map[string]*string {
	after := map[string]*string{}
	for path, f := range a.files {
		before := a.before[path]
		switch {
		case f.exists:
			if text := f.text(); before == nil || text != *before {
				after[path] = &text
			}
		case before != nil:
			after[path] = nil
		}
	}
	return after
}

// apply applies a block. If the block does not fit, it returns the reason, for the model; otherwise "".
func (a *applier) apply(e *Edit) (reason string) {
	if e.Path == "" {
		return a.applyNameless(e)
	}
	if before := a.before[e.Path]; before != nil {
		if encoding := charset.Of([]byte((*before)[:min(len(*before), charset.Head)])); encoding != "" {
			return "the file is text in " + encoding + ", and edits are UTF-8; " + charset.Advice(encoding)
		}
	}
	f := a.file(e.Path)
	switch {
	case e.isWord && !f.exists:
		return fmt.Sprintf("there is no file %s; a new one is named by its path, ./%s, and an example stands in a fence of text", e.Path, e.Path)
	case e.act == write:
		return a.write(f, e)
	case len(v4a.OldLines(e.lines)) == 0 && e.act == change:
		return a.create(f, e)
	case !f.exists:
		return a.missingFileReason(e)
	}
	if a.isRepeated(f, e) {
		return ""
	}
	hits, reason := a.locate(f, e)
	switch {
	case reason != "":
		return reason
	case hits == nil:
		return a.mismatchReason(f, e)
	case e.act == remove && hits[0].leavesLines(f):
		return "it removes the file and does not take away all of its lines; give them all, or remove the file by a command"
	}
	a.put(f, e, hits)
	return ""
}

// leavesLines reports whether the file still has lines after the edit.
func (h hit) leavesLines(f *file) bool {
	return len(v4a.OldLines(h.lines)) < f.Len() || len(v4a.NewLines(h.lines)) > 0
}

// applyNameless applies a block without a path, if it fits exactly one file.
func (a *applier) applyNameless(e *Edit) (reason string) {
	var fits []*file
	var hits []hit
	if len(v4a.OldLines(e.lines)) > 0 {
		for _, path := range slices.Sorted(maps.Keys(a.before)) {
			f := a.file(path)
			if !f.exists {
				continue
			}
			found, reason := a.locate(f, e)
			if reason != "" {
				return f.path + " may be meant, but " + reason
			}
			if found != nil {
				fits, hits = append(fits, f), found
			}
		}
	}
	if len(fits) != 1 {
		return "it names no file; put the path of its file alone on a line above the block"
	}
	if a.isRepeated(fits[0], e) {
		return ""
	}
	a.note("block %d names no file and was applied to %s, the only one that it fits.", e.Number, fits[0].path)
	a.put(fits[0], e, hits)
	return ""
}

// write replaces a whole file. If it must not, it returns the reason, for the model.
func (a *applier) write(f *file, e *Edit) (why string) {
	was := f.texts()
	if line := omissionLine(e.lines, was); line != "" {
		return fmt.Sprintf("the text stands for the whole file, and its line %.100q for lines that are left out; write all of them", line)
	}
	if len(e.lines) == 0 && len(was) > 0 {
		return "the fence is empty and the file is not; to empty or remove a file, use a command"
	}
	f.exists = true
	a.replace(f, alignLines(was, v4a.NewLines(e.lines)), find.Place{FirstLine: f.Next(0)}, "")
	return ""
}

// create fills a new or empty file. For any other file it returns the reason, for the model.
func (a *applier) create(f *file, e *Edit) (why string) {
	if f.Len() > 0 {
		how := "repeat in SEARCH the lines that it stands by"
		if a.format == Udiff {
			how = "give the lines of the file that stand around it"
		}
		return "the file has text already, and nothing says where in it the new lines go; " + how
	}
	f.exists = true
	a.replace(f, e.lines, find.Place{}, "")
	f.ended = !e.isUnended
	return ""
}

// missingFileReason returns the reason for an edit of a missing file. It suggests a file of the same name in
// another folder.
func (a *applier) missingFileReason(e *Edit) string {
	for _, other := range slices.Sorted(maps.Keys(a.before)) {
		if other != e.Path && a.before[other] != nil && path.Base(other) == path.Base(e.Path) {
			return fmt.Sprintf("there is no such file, but %s; write paths whole, from the working directory", other)
		}
	}
	return "there is no such file; write its path from the working directory, or look where it is"
}

// isRepeated reports whether an earlier block was the same, and adds a note then.
func (a *applier) isRepeated(f *file, e *Edit) bool {
	first := a.done[comparableForm(f, e)]
	if first > 0 {
		a.note("block %d says what block %d has done, and was passed over.", e.Number, first)
	}
	return first > 0
}

// comparableForm returns a text that is equal for equal blocks of one file.
func comparableForm(f *file, e *Edit) string {
	var b strings.Builder
	b.WriteString(f.path + "\n")
	for _, l := range e.lines {
		b.WriteString(string(rune(l.Kind)) + l.Text + "\n")
	}
	return b.String()
}

// put applies a block at its place and adds notes about doubtful matches.
func (a *applier) put(f *file, e *Edit, hits []hit) {
	if how := hits[0].note; how != "" {
		a.note("block %d fits %s only %s; what it adds was put there in the same way, so look at that.", e.Number, f.path, how)
	}
	if e.assumed {
		a.note("block %d names no file and was applied to %s, that of the block before.", e.Number, f.path)
	}
	var end find.ID
	for _, h := range hits {
		if h.others != "" {
			a.note("block %d was applied at %s of %s, where another place may be meant: %s. Make sure that the place is right.", e.Number, f.numbers([]find.Place{h.Place}), f.path, h.others)
		}
		end = a.replace(f, h.lines, h.Place, h.margin)
	}
	if end == 0 && e.wasUnended != e.isUnended { // it adds or removes the ending of the last line
		f.ended = e.wasUnended
	}
	if e.act == remove {
		f.exists = false
	}
	a.done[comparableForm(f, e)] = e.Number
}

// replace applies a block's lines to a file at a place, and returns the line after them. An inserted line
// gets the ending of the removed line that it replaces, or else of the line above. The file's own
// indentation at the place replaces margin, the indentation of the block.
func (a *applier) replace(f *file, lines []v4a.Line, at find.Place, margin string) find.ID {
	id := at.FirstLine
	var endings []string // of the removed lines that no inserted line has replaced yet; the last one stays
	for _, l := range lines {
		switch l.Kind {
		case v4a.Keep:
			id, endings = f.Next(id), nil
		case v4a.Remove:
			endings = append(endings, f.endings[id])
			id = f.Delete(id)
		case v4a.Insert:
			ending := f.endings[f.Prev(id)]
			if len(endings) > 0 {
				ending = endings[0]
			}
			if len(endings) > 1 {
				endings = endings[1:]
			}
			text := l.Text
			if f.mark != "" { // the byte order mark belongs to no line
				text = strings.TrimPrefix(text, byteOrderMark)
			}
			if strings.TrimSpace(text) != "" {
				text = at.Offset + strings.TrimPrefix(text, margin)
			}
			f.insert(id, text, ending)
		}
	}
	return id
}
