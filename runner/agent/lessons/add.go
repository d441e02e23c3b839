package lessons

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/tools/memory"
)

// LessonID returns the ID for a lesson with this claim. Equal claims have equal IDs, so a claim is stored only once.
func LessonID(claim string) string {
	return fmt.Sprintf("l-%.4x", sha256.Sum256([]byte(claim)))
}

const fileHead = "# Lessons of runs of agent-ci on this repository: get_memory tells them to models. Review them like code.\n"

// Append returns the content of a lessons file with more added at the end of its list. It keeps the existing bytes.
// It returns an error if the result would not be a valid file with exactly these lessons.
func Append(data []byte, more []memory.Lesson) ([]byte, error) {
	before, problems := Parse(data)
	if len(problems) > 0 {
		return nil, problems
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte(fileHead + "version: 1\nlessons:\n")
	}
	data, indent := withOpenList(data)
	added := bytes.NewBuffer(slices.Clone(data))
	if !bytes.HasSuffix(data, []byte("\n")) {
		added.WriteString(lineEnd(data))
	}
	for _, l := range more {
		added.WriteString(strings.ReplaceAll(yamlEntry(l, indent), "\n", lineEnd(data)))
	}
	after, problems := Parse(added.Bytes())
	if len(problems) > 0 {
		return nil, fmt.Errorf("%d lessons do not go behind those of %s: %w", len(more), Path, errors.New(problems[0].String()))
	}
	if !reflect.DeepEqual(after, slices.Concat(before, more)) {
		return nil, fmt.Errorf("%d lessons do not go behind those of %s: something stands behind its list; make lessons: the last key", len(more), Path)
	}
	return added.Bytes(), nil
}

// withOpenList returns the file's content ready for more entries: without the [] of an empty list. indent is the
// indentation of the entries.
func withOpenList(data []byte) (opened []byte, indent string) {
	root, _ := config.ParseDocument(Path, data)
	for pair := range slices.Chunk(root.Content, 2) {
		key, list := pair[0].Value, pair[1]
		switch {
		case key == "lessons" && len(list.Content) > 0:
			return data, indentOf(data, list.Content[0])
		case key == "lessons" && list.Kind == yaml.SequenceNode: // []
			lines := bytes.SplitAfter(data, []byte("\n"))
			lines[list.Line-1] = bytes.Replace(lines[list.Line-1], []byte("[]"), nil, 1)
			return bytes.Join(lines, nil), "  "
		}
	}
	return data, "  "
}

// indentOf returns the indentation of the list's first entry.
func indentOf(data []byte, first *yaml.Node) string {
	line := bytes.Split(data, []byte("\n"))[first.Line-1]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " "))])
}

// lineEnd returns the line end of a file's first line: "\r\n" or "\n".
func lineEnd(data []byte) string {
	if first, _, _ := bytes.Cut(data, []byte("\n")); bytes.HasSuffix(first, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// yamlEntry returns a lesson as an indented entry of a YAML list.
func yamlEntry(l memory.Lesson, indent string) string {
	evidence := make([]string, len(l.Evidence))
	for i, e := range l.Evidence {
		evidence[i] = strconv.Quote(e)
	}
	return fmt.Sprintf("%[1]s- id: %[2]s\n%[1]s  claim: %[3]s\n%[1]s  evidence: [%[4]s]\n%[1]s  run: %[5]s\n%[1]s  date: %[6]s\n",
		indent, l.ID, strconv.Quote(l.Claim), strings.Join(evidence, ", "), strconv.Quote(l.Run), strconv.Quote(l.Date))
}

// Added returns the lessons added to a file between its contents before and now. onlyProposed is true if there are
// some, all are among proposed, and nothing else in the file changed.
func Added(before, now []byte, proposed []memory.Lesson) (added []memory.Lesson, onlyProposed bool) {
	added, expected := splitAppended(before, now)
	for _, l := range added {
		if !slices.ContainsFunc(proposed, func(p memory.Lesson) bool { return isSameLesson(l, p) }) {
			return nil, false
		}
	}
	return added, len(added) > 0 && bytes.Equal(expected, now)
}

// RestoreLineEnds returns now with the line ends of before, because git may have changed them in a checkout. It
// returns now unchanged if the files differ in more than line ends and appended lessons.
func RestoreLineEnds(before, now []byte) []byte {
	if _, expected := splitAppended(before, now); bytes.Equal(withUnixLineEnds(expected), withUnixLineEnds(now)) {
		return expected
	}
	return now
}

// splitAppended returns the lessons appended to a file between its contents before and now, and the content that appending
// them gives. Both are nil if a content has problems, or if now has fewer lessons.
func splitAppended(before, now []byte) (added []memory.Lesson, expected []byte) {
	earlier, problems := Parse(before)
	current, currentProblems := Parse(now)
	switch {
	case len(problems)+len(currentProblems) > 0 || len(current) < len(earlier):
		return nil, nil
	case len(current) == len(earlier):
		return nil, before
	}
	added = current[len(earlier):]
	expected, _ = Append(before, added) // after an error it is nil, which is no content
	return added, expected
}

func withUnixLineEnds(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

// isSameLesson reports whether l is the proposed lesson, possibly with the IDs of commits or blobs added to its
// evidence.
func isSameLesson(l, proposed memory.Lesson) bool {
	for _, pinned := range l.Evidence {
		if !slices.ContainsFunc(proposed.Evidence, func(unpinned string) bool { return addsOnlyPin(pinned, unpinned) }) {
			return false
		}
	}
	l.Evidence = proposed.Evidence // compared above
	return reflect.DeepEqual(l, proposed)
}

// Unknown returns those of more that have an ID that no lesson of known has.
func Unknown(known, more []memory.Lesson) []memory.Lesson {
	return slices.DeleteFunc(slices.Clone(more), func(m memory.Lesson) bool {
		return slices.ContainsFunc(known, func(k memory.Lesson) bool { return k.ID == m.ID })
	})
}
