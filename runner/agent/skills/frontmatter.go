package skills

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Maximum lengths of fields by the standard for skills (Agent Skills), in characters.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

const (
	// maxFrontMatter is the maximum size of a front matter, in bytes.
	maxFrontMatter = 64 << 10
	// maxText is how many bytes of the text below the front matter a model gets. With the list of files they fit
	// into one output.
	maxText = 32 << 10
	// maxMetadata is the maximum number of metadata entries.
	maxMetadata = 50
)

// parse parses the content of a SKILL.md. folder is the name of its folder. remarks describe harmless deviations
// from the standard. An error means that the skill cannot be used.
func parse(raw []byte, folder string) (s Skill, remarks []string, err error) {
	head, text, err := splitFrontMatter(raw)
	if err != nil {
		return s, nil, err
	}
	fields, repaired, err := readFields(head)
	if err != nil {
		return s, nil, err
	}
	if repaired {
		remarks = append(remarks, "its front matter is no YAML and was read line by line; put values that have a colon in quotes")
	}
	remark := func(format string, args ...any) { remarks = append(remarks, fmt.Sprintf(format, args...)) }
	if s.Description = oneLine(fields["description"].text, maxDescription); s.Description == "" {
		return s, remarks, errors.New("has no description, without which a model can't know when to load it")
	}
	if length := utf8.RuneCountInString(fields["description"].text); length > maxDescription {
		remark("its description has %d characters, of which %d are used", length, maxDescription)
	}
	if s.Name, err = nameOf(fields["name"].text, folder, remark); err != nil {
		return s, remarks, err
	}
	s.License, s.AllowedTools = oneLine(fields["license"].text, maxDescription), oneLine(fields["allowed-tools"].text, maxDescription)
	s.Compatibility, s.Metadata = oneLine(fields["compatibility"].text, maxCompatibility), fields["metadata"].entries
	visible := clip.Visible(string(text), len(text))
	s.Text = clip.Start(visible, maxText)
	s.CutBytes = len(visible) - len(s.Text)
	if s.CutBytes > 0 {
		remark("its text has %d bytes, of which %d are given to a model", len(visible), len(s.Text))
	}
	if hidden := len(strings.ReplaceAll(strings.TrimSpace(string(text)), "\r\n", "\n")) - len(visible); hidden > 0 {
		remark("%d bytes of characters that show nothing were taken out of its text", hidden)
	}
	return s, remarks, nil
}

// nameOf returns a skill's given name, or its folder's name if the given one cannot be used. It calls remark for each
// deviation from the standard.
func nameOf(given, folder string, remark func(format string, args ...any)) (string, error) {
	name := oneLine(given, maxName)
	switch {
	case name == "":
		remark("it has no name and is called as its folder")
	case !isUsableName(name) || name != given:
		remark("its name %q cannot be used, and it is called as its folder", name)
	case !isStandardName(name):
		remark("its name %q is not of lower-case letters, digits and single hyphens", name)
		return name, nil
	case name != folder:
		remark("its name %q is not that of its folder", name)
		return name, nil
	default:
		return name, nil
	}
	if !isUsableName(folder) || utf8.RuneCountInString(folder) > maxName {
		return "", errors.New("has no name that can be used, and no folder with one")
	}
	return folder, nil
}

// isStandardName reports whether a name follows the standard: lower-case letters, digits and single hyphens.
func isStandardName(name string) bool {
	hasOther := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
	hasStrayHyphen := strings.Contains("-"+name+"-", "--") // doubled, first or last
	return !hasOther && !hasStrayHyphen
}

// isUsableName reports whether a name is safe in lists and calls: it begins with a letter or digit, and contains only
// visible letters, digits and a few marks.
func isUsableName(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	isUnsafe := func(r rune) bool {
		isAllowed := unicode.In(r, unicode.L, unicode.M, unicode.N) || strings.ContainsRune("._: -", r)
		return !isAllowed || clip.IsInvisible(r)
	}
	return unicode.In(first, unicode.L, unicode.N) && utf8.ValidString(name) && !strings.ContainsFunc(name, isUnsafe)
}

// oneLine returns untrusted text on one line, without invisible characters, cut to maxLength characters.
func oneLine(text string, maxLength int) string {
	return markdown.Cut(clip.VisibleLine(text, maxLength*utf8.UTFMax), maxLength)
}

// splitFrontMatter returns a file's front matter, which is between two lines ---, and the text below it.
func splitFrontMatter(raw []byte) (head, text []byte, err error) {
	const mark = "---"
	first, rest, hasLine := bytes.Cut(bytes.TrimPrefix(raw, []byte("\uFEFF")), []byte("\n"))
	if !hasLine || string(bytes.TrimRight(first, " \t\r")) != mark {
		return nil, nil, errors.New("has no front matter: its first line is not ---")
	}
	for start := 0; start <= min(len(rest), maxFrontMatter); {
		line, _, hasLine := bytes.Cut(rest[start:], []byte("\n"))
		next := start + len(line) + 1
		if string(bytes.TrimRight(line, " \t\r")) == mark {
			return rest[:start], rest[min(next, len(rest)):], nil
		}
		if !hasLine {
			break
		}
		start = next
	}
	return nil, nil, fmt.Errorf("has a front matter without an end: no line --- within %d bytes", maxFrontMatter)
}

// field is the value of a key in a front matter: a text, or the entries of a mapping.
type field struct {
	text    string
	entries map[string]string
}

// readFields parses a front matter. repaired means that it was not valid YAML and was read by repairedYAML.
func readFields(head []byte) (fields map[string]field, repaired bool, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(head, &document); err != nil {
		repaired, document = true, yaml.Node{}
		if err := yaml.Unmarshal(repairedYAML(head), &document); err != nil {
			return nil, repaired, errors.New("has a front matter that cannot be read as YAML")
		}
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, repaired, errors.New("has a front matter that is no mapping of keys to values")
	}
	fields = map[string]field{}
	for pair := range slices.Chunk(document.Content[0].Content, 2) {
		key, value := pair[0], pair[1]
		fields[key.Value] = field{text: textOf(value), entries: entriesOf(value)}
	}
	return fields, repaired, nil
}

// textOf returns the text of a scalar, the joined texts of a list, or "" for other values. It does not follow
// aliases, which could expand to far more text than the file has.
func textOf(value *yaml.Node) string {
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
		return value.Value
	case value.Kind == yaml.SequenceNode:
		var parts []string
		for _, part := range value.Content {
			if part.Kind == yaml.ScalarNode {
				parts = append(parts, part.Value)
			}
		}
		return strings.Join(parts, " ")
	}
	return ""
}

// entriesOf returns the first maxMetadata entries of a mapping whose values are scalars. It returns nil for other
// nodes.
func entriesOf(value *yaml.Node) map[string]string {
	if value.Kind != yaml.MappingNode {
		return nil
	}
	entries := map[string]string{}
	for pair := range slices.Chunk(value.Content, 2) {
		key, value := pair[0], pair[1]
		if name := oneLine(key.Value, maxName); name != "" && value.Kind == yaml.ScalarNode && len(entries) < maxMetadata {
			entries[name] = oneLine(value.Value, maxDescription)
		}
	}
	return entries
}

// standardKeys are the keys of the standard whose values are texts.
var standardKeys = []string{"name", "description", "license", "compatibility", "allowed-tools"}

// repairedYAML returns valid YAML with the first value of each standard key in a front matter, quoted. It drops
// everything else. Other clients accept invalid YAML, too: usually the mistake is an unquoted colon, as in
// description: a: b.
func repairedYAML(head []byte) []byte {
	values := map[string]string{}
	for line := range strings.Lines(string(head)) {
		key, value, hasColon := strings.Cut(line, ":")
		isFirst := values[key] == ""
		if hasColon && isFirst && slices.Contains(standardKeys, key) {
			values[key] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	var s strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&s, "%s: '%s'\n", key, strings.ReplaceAll(strings.ToValidUTF8(values[key], ""), "'", "''"))
	}
	return []byte(s.String())
}
