package lessons

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// Path is the path of the lessons file, relative to the repository's root.
const Path = ".agent-ci/lessons.yml"

// Limits of the lessons file.
const (
	MaxSize     = 256 << 10 // bytes
	maxLessons  = 500
	maxClaim    = 500 // bytes
	MaxEvidence = 5
	maxProof    = 200 // bytes of one piece of evidence
	maxProblems = 100
)

// Parse returns the lessons in the content of the lessons file. An empty file has no lessons.
// If there are problems, ignore the lessons.
func Parse(data []byte) ([]memory.Lesson, config.Problems) {
	var r reader
	if len(data) > MaxSize {
		return nil, TooLarge()
	}
	if len(data) == 0 {
		return nil, nil
	}
	root, problems := config.ParseDocument(Path, data)
	if len(problems) > 0 {
		return nil, problems
	}
	return r.document(root), r.problems
}

// TooLarge returns the problem of a file over MaxSize bytes.
func TooLarge() config.Problems {
	return fileProblem(fmt.Sprintf("is larger than %d KiB; take lessons out that help nobody any more", MaxSize>>10))
}

// NoFile returns the problem of a path that is not a regular file.
func NoFile() config.Problems {
	return fileProblem("is no plain file in a plain folder, but a link, a folder or a submodule; make it one")
}

// fileProblem returns a problem of the whole file.
func fileProblem(message string) config.Problems {
	return config.Problems{{File: Path, Line: 1, Column: 1, Message: message}}
}

// reader parses the file and collects its problems.
type reader struct{ problems config.Problems }

// addProblemAt adds a problem at a node's line and column. key is the path of the value in the file.
func (r *reader) addProblemAt(node *yaml.Node, key, format string, args ...any) {
	r.add(config.Problem{File: Path, Line: node.Line, Column: node.Column, Key: key, Message: fmt.Sprintf(format, args...)})
}

// add adds a problem, up to maxProblems.
func (r *reader) add(p config.Problem) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, p)
	}
}

// document returns the lessons of a file, given its root node; nil is an empty file.
func (r *reader) document(root *yaml.Node) []memory.Lesson {
	if root == nil {
		root = &yaml.Node{Line: 1, Column: 1}
	}
	keys := r.mapping(root, "", []string{"version", "lessons"})
	if keys == nil {
		return nil
	}
	if version := keys["version"]; version != nil && (version.Kind != yaml.ScalarNode || version.Value != "1") {
		r.addProblemAt(version, "version", "must be 1")
	}
	list := keys["lessons"]
	if list == nil || list.Kind == yaml.ScalarNode && list.Tag == "!!null" {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		r.addProblemAt(list, "lessons", "must be a list")
		return nil
	}
	if len(list.Content) > maxLessons {
		r.addProblemAt(list, "lessons", "has %d entries, more than %d; take those out that help nobody any more", len(list.Content), maxLessons)
		return nil
	}
	return r.lessons(list)
}

// lessons returns the lessons of the list. Two entries with one ID are a problem.
func (r *reader) lessons(list *yaml.Node) (all []memory.Lesson) {
	lineOf := map[string]int{} // of the last entry, by lesson ID
	for i, node := range list.Content {
		key := config.JoinPath("lessons", i)
		l := r.lesson(node, key)
		if line, twice := lineOf[l.ID]; twice && l.ID != "" {
			r.addProblemAt(node, key+".id", "is also that of the entry in line %d", line)
		}
		lineOf[l.ID] = node.Line
		all = append(all, l)
	}
	return all
}

// lesson returns the lesson of a list entry. key is the entry's path in problems, such as lessons[0].
func (r *reader) lesson(node *yaml.Node, key string) (l memory.Lesson) {
	keys := r.mapping(node, key, []string{"id", "claim", "evidence", "run", "date"})
	for _, field := range []struct {
		name  string
		into  *string
		check func(string) error
	}{{"id", &l.ID, checkID}, {"claim", &l.Claim, CheckClaim}, {"run", &l.Run, checkRun}, {"date", &l.Date, checkDate}} {
		if value := keys[field.name]; value != nil {
			*field.into = r.text(value, key+"."+field.name, field.check)
		}
	}
	if evidence := keys["evidence"]; evidence != nil {
		l.Evidence = r.evidence(evidence, key+".evidence")
	}
	return l
}

// evidence returns the entries of a lesson's evidence list, or nil if their number is wrong.
func (r *reader) evidence(node *yaml.Node, key string) []string {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 || len(node.Content) > MaxEvidence {
		r.addProblemAt(node, key, "must be a list of 1 to %d: path@sha, check:NAME or run:ID", MaxEvidence)
		return nil
	}
	all := make([]string, len(node.Content))
	for i, item := range node.Content {
		all[i] = r.text(item, config.JoinPath(key, i), checkEvidence)
	}
	return all
}

// mapping returns the values of a YAML mapping by key, or nil if node is no mapping. It adds a problem for each
// unknown or duplicate key, and for each key of wanted that is missing. key is the path of node in problems, such as
// lessons[0], or "" for the whole document.
func (r *reader) mapping(node *yaml.Node, key string, wanted []string) map[string]*yaml.Node {
	if node.Kind != yaml.MappingNode || usesYAMLFeatures(node) {
		r.addProblemAt(node, key, "must be a mapping with %s", strings.Join(wanted, ", "))
		return nil
	}
	found := map[string]*yaml.Node{}
	for pair := range slices.Chunk(node.Content, 2) {
		name := pair[0]
		inner := strings.TrimPrefix(key+"."+name.Value, ".")
		switch {
		case name.Kind != yaml.ScalarNode || usesYAMLFeatures(name) || usesYAMLFeatures(pair[1]):
			r.addProblemAt(name, key, "anchors, aliases, tags and keys that are no text are not allowed")
		case !slices.Contains(wanted, name.Value):
			r.add(config.Problem{File: Path, Line: name.Line, Column: name.Column, Key: inner, Message: "unknown key", Suggestion: config.Nearest(name.Value, wanted)})
		case found[name.Value] != nil:
			r.addProblemAt(name, inner, "is given twice, the first time in line %d", found[name.Value].Line)
		default:
			found[name.Value] = pair[1]
		}
	}
	for _, name := range wanted {
		if found[name] == nil {
			r.addProblemAt(node, strings.TrimPrefix(key+"."+name, "."), "is missing")
		}
	}
	return found
}

// text returns a node's text. If the node is no text, or check returns an error, it adds a problem and returns "".
func (r *reader) text(node *yaml.Node, key string, check func(string) error) string {
	isText := node.Tag == "!!str" || node.Tag == "!!timestamp" // a date without quotes is a timestamp
	if node.Kind != yaml.ScalarNode || !isText || usesYAMLFeatures(node) {
		r.addProblemAt(node, key, "must be text; put it in quotes")
		return ""
	}
	if err := check(node.Value); err != nil {
		r.addProblemAt(node, key, "%s", err)
		return ""
	}
	return node.Value
}

// usesYAMLFeatures reports whether a node uses YAML features that a lessons file must not use: anchors, aliases and tags.
func usesYAMLFeatures(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || node.Anchor != "" || node.Style&yaml.TaggedStyle != 0
}

// checkID returns an error unless s is a valid lesson ID.
func checkID(s string) error {
	if s == "" || len(s) > 64 || s[0] == '-' || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("must be lower-case letters, digits and hyphens, at most 64")
	}
	return nil
}

// CheckClaim returns an error unless s is a valid claim: one line of visible characters, because people review it.
func CheckClaim(s string) error { return checkLine(s, maxClaim) }

// checkLine returns an error unless s is one line of visible characters, with at most maxBytes bytes.
func checkLine(s string, maxBytes int) error {
	switch {
	case strings.TrimSpace(s) == "" || strings.TrimSpace(s) != s:
		return fmt.Errorf("must not be blank, nor begin or end with blanks")
	case len(s) > maxBytes:
		return fmt.Errorf("has %d bytes, more than %d", len(s), maxBytes)
	case !utf8.ValidString(s):
		return fmt.Errorf("must be UTF-8")
	}
	if index := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || clip.IsInvisible(r) }); index >= 0 {
		hidden, _ := utf8.DecodeRuneInString(s[index:])
		return fmt.Errorf("must be one line of characters that can be seen, without %U", hidden)
	}
	return nil
}

func checkRun(s string) error { return checkLine(s, 100) }

func checkDate(s string) error {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return fmt.Errorf("must be a date such as 2026-01-31")
	}
	return nil
}
