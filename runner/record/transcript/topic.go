package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// topicWidth limits a topic, in UTF-16 units. shownFiles limits the files that it names.
const topicWidth, shownFiles = 100, 3

// topicKeys lists the arguments that may describe a call, best first.
var topicKeys = sync.OnceValue(func() []string {
	command := func(t dialect.Tool) string {
		if t.Name == dialect.WriteStdin { // what it types says less than the command it types to
			return ""
		}
		return t.Command
	}
	return slices.Concat(
		dialect.Distinct(command), dialect.Distinct(func(t dialect.Tool) string { return t.Path }), []string{"dir_path", "pattern", "query", "url"},
		dialect.Distinct(func(t dialect.Tool) string { return t.Patch }), []string{"patch", "session_id", "chars", "explanation", "name", "description"},
	)
})

// Topic returns the subject of a call in one line: the command, the path, or the files of a patch.
// It has at most 100 UTF-16 units. Its text is the model's, so treat it as hostile.
func (t ToolStarted) Topic() string {
	text := t.ReadableInput()
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &args); err == nil {
		text = topicOf(args)
	}
	if files := patchedFiles(text); files != "" {
		text = files
	}
	text = strings.TrimSpace(text)
	options := scriptOptionsLine().FindString(text) // at the start of a script, or ""
	first, rest, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, options)), "\n")
	if rest != "" {
		first = strings.TrimRight(first, " \\") + " …"
	}
	return strings.Clone(markdown.Cut(first, topicWidth))
}

// scriptOptionsLine matches a first line that has options of a script.
var scriptOptionsLine = lazyregexp.New(`^//[ \t]*[@\w.-]+:[^\n]*\n`)

// topicOf returns the best argument of a call as its topic, or "".
func topicOf(args map[string]json.RawMessage) string {
	for _, key := range topicKeys() {
		if value, ok := args[key]; ok {
			return argumentText(value)
		}
	}
	return ""
}

// argumentText returns a JSON value as text. The strings of a list are joined with blanks.
func argumentText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var argv []string
	if json.Unmarshal(value, &argv) == nil {
		return strings.Join(argv, " ")
	}
	return string(value)
}

var patchMarks = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: "}

// patchCommand matches the text before a patch, if it is a command that applies the patch. Its
// group is the delimiter of the here-document.
var patchCommand = lazyregexp.New(`^\s*(?:[\w./]*sh -l?c )?(?:cd [\w./'"-]+ &&\s+)?(?:apply_?patch\s+)?(?:<<-?\s*['"]?(\w+)['"]?\s*)?['"]?$`)

// isPatch reports whether a text is a V4A patch, or a command that only applies one. A command with
// other effects is no patch, because the names of files would hide these effects.
func isPatch(text string) bool {
	before, patch, found := strings.Cut(text, "*** Begin Patch")
	if !found {
		return false
	}
	if strings.TrimSpace(before) == "" {
		return true
	}
	command := patchCommand().FindStringSubmatch(before)
	_, after, ended := strings.Cut(patch, "\n*** End Patch")
	if command == nil || !ended {
		return false
	}
	delimiter := command[1] // of the here-document, or ""
	return strings.Trim(after, " \t\r\n'\"") == delimiter
}

// patchedFiles returns the names of the files in a V4A patch, or "" for another text.
func patchedFiles(text string) string {
	if !isPatch(text) {
		return ""
	}
	var files []string
	for line := range strings.Lines(text) {
		for _, mark := range patchMarks {
			if path, ok := strings.CutPrefix(line, mark); ok {
				files = append(files, strings.TrimSpace(path))
			}
		}
	}
	return clip.Some(files, shownFiles)
}

// Files returns the files that the call changed, in one line, or "".
func (f ToolFinished) Files() string {
	all, _ := f.Detail["files"].([]any)
	var names []string
	for _, entry := range all {
		file, _ := entry.(map[string]any)
		if name, hasPath := file["path"].(string); hasPath {
			names = append(names, name)
		}
	}
	return markdown.Cut(clip.Some(names, shownFiles), topicWidth)
}

// ReadableArguments returns arguments for people, one a line. A text of several lines stays as it is. If
// there is only one argument and it is text, such as a patch, it is returned alone.
func ReadableArguments(input string) string {
	args, ok := decodeArguments(input)
	if !ok {
		return input
	}
	if len(args) == 1 {
		if text, isText := jsonString(args[0].value); isText {
			return text
		}
	}
	var b strings.Builder
	for _, arg := range args {
		b.WriteString(arg.name + ":" + arg.format() + "\n")
	}
	return b.String()
}

type namedValue struct {
	name  string
	value json.RawMessage
}

// decodeArguments returns the members of a JSON object in their order. hasMembers is false for an empty object,
// and for anything but an object.
func decodeArguments(input string) (members []namedValue, hasMembers bool) {
	d := json.NewDecoder(strings.NewReader(input))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		members = append(members, namedValue{name.(string), value})
	}
	if _, err := d.Token(); err != nil || d.More() {
		return nil, false
	}
	return members, len(members) > 0
}

// format returns the value as text after the name. Text of several lines is indented.
func (m namedValue) format() string {
	text, isText := jsonString(m.value)
	switch {
	case !isText:
		var b bytes.Buffer
		if json.Compact(&b, m.value) != nil {
			return " " + string(m.value)
		}
		return " " + b.String()
	case strings.Contains(strings.TrimRight(text, "\n"), "\n"):
		return "\n  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
	}
	return " " + text
}

// jsonString returns the text of a JSON string. isText is false for another value.
func jsonString(value json.RawMessage) (text string, isText bool) {
	isText = json.Unmarshal(value, &text) == nil && value[0] == '"'
	return text, isText
}
