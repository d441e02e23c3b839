package tools

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// converters holds the functions that convert values in other agents' form to the shape that an argument has here.
var converters = map[dialect.Shape]func(any) any{
	dialect.Line: toCommandLine, dialect.Vector: toArgumentVector,
	dialect.Steps: planItems("step", []string{"content", "description", "title"}, "id", "activeForm", "priority"),
	dialect.Todos: planItems("content", []string{"step", "description", "title"}, "activeForm"),
	dialect.List:  toList, dialect.Questions: toQuestionList, dialect.Glob: typeToGlob,
}

// synonyms returns the other names and shapes that a tool's arguments may have, in order of precedence.
func synonyms(tool string) (all []synonym) {
	for _, a := range dialect.Of(tool).Takes {
		if a.As != dialect.AsWritten && a.As != dialect.Glob {
			all = append(all, synonym{a.Name, a.Name, converters[a.As]})
		}
		for _, name := range a.Also {
			all = append(all, synonym{name, a.Name, converters[a.As]})
		}
	}
	return all
}

func renames(to string, from ...string) (all []synonym) {
	for _, name := range from {
		all = append(all, synonym{name, to, nil})
	}
	return all
}

// synonym moves the value of the argument from to the argument to, unless that one is present.
type synonym struct {
	from, to string
	convert  func(any) any // nil leaves the value as it is
}

// withoutNamespace removes the namespace that some models put before a tool's name.
func withoutNamespace(name string) string {
	for _, group := range agentNamespaces {
		if rest, within := strings.CutPrefix(name, group+"."); within {
			return QualifiedName(group, rest)
		}
	}
	return strings.TrimPrefix(name, "functions.")
}

// translate converts the arguments of a call to those of the tool. called is the name in the call, which may be the
// name of another agent's tool.
func translate(tool, called string, arguments map[string]any) {
	asGlob := tool == dialect.GrepFiles && slices.Contains(dialect.Called(withoutNamespace(called)), dialect.GlobTool)
	if asGlob {
		applySynonyms(renames("include", "pattern", "query"), arguments)
	}
	applySynonyms(synonyms(tool), arguments)
	switch {
	case asGlob:
		setMissing(arguments, "pattern", "")
	case tool == dialect.ListDir && called != tool && NamesTool(called, tool):
		setMissing(arguments, "dir_path", ".")
	}
}

// setMissing sets a missing argument.
func setMissing(arguments map[string]any, name string, value any) {
	if _, exists := arguments[name]; !exists {
		arguments[name] = value
	}
}

// applySynonyms applies synonyms to arguments: it renames them and converts their values. An argument that is present under its
// proper name wins.
func applySynonyms(synonyms []synonym, arguments map[string]any) {
	for _, s := range synonyms {
		value, exists := arguments[s.from]
		if !exists {
			continue
		}
		if s.from != s.to {
			if _, alreadySet := arguments[s.to]; alreadySet {
				continue
			}
			delete(arguments, s.from)
		}
		if s.convert != nil {
			value = s.convert(value)
		}
		arguments[s.to] = value
	}
}

// toCommandLine converts a list of words to one line for a shell. Of ["bash", "-c", script] it returns the script.
func toCommandLine(value any) any {
	argv, ok := wordList(value)
	if !ok {
		return value
	}
	shells := []string{"bash", "sh", "zsh", "dash"}
	if len(argv) == 3 && slices.Contains(shells, path.Base(argv[0])) && (argv[1] == "-c" || argv[1] == "-lc") {
		return argv[2]
	}
	return Quoted(argv)
}

// Quoted returns words as one line for a shell.
func Quoted(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// toArgumentVector converts a line to the words that run it in a shell.
func toArgumentVector(value any) any {
	line, ok := value.(string)
	if !ok {
		return value
	}
	if _, ok := wordList(value); ok {
		return parseList(value)
	}
	return []any{"sh", "-c", line}
}

// parseList parses a list written as JSON text, as some models do. Other values stay.
func parseList(value any) any {
	text, ok := value.(string)
	if !ok || !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return value
	}
	var list []any
	if json.Unmarshal([]byte(text), &list) != nil {
		return value
	}
	return list
}

// wordList returns the texts of a list, or false if value is not a list of texts.
func wordList(value any) ([]string, bool) {
	list, ok := parseList(value).([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	words := make([]string, len(list))
	for i, item := range list {
		if words[i], ok = item.(string); !ok {
			return nil, false
		}
	}
	return words, true
}

// quote returns a text as one word of a shell script (POSIX 2.2.2).
func quote(word string) string {
	needsQuotes := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("@%+=:,./_-", r) }
	if word != "" && !strings.ContainsFunc(word, needsQuotes) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// isAlphanumeric reports whether a character is an ASCII letter or digit.
func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// planItems returns a function that converts a list of steps or todos. key is the name of their text here, others are
// its names in other agents. unused are keys that have no counterpart here.
func planItems(key string, others []string, unused ...string) func(any) any {
	return func(value any) any {
		items, ok := parseList(value).([]any)
		if !ok {
			return value
		}
		converted := make([]any, len(items))
		for i, item := range items {
			if text, ok := item.(string); ok {
				item = map[string]any{key: text, "status": "pending"}
			}
			if fields, ok := item.(map[string]any); ok {
				applySynonyms(renames(key, others...), fields)
				for _, name := range slices.Concat(others, unused) {
					delete(fields, name)
				}
			}
			converted[i] = item
		}
		return converted
	}
}

// toList converts a text to a list of one text.
func toList(value any) any {
	value = parseList(value)
	if text, ok := value.(string); ok {
		return []any{text}
	}
	return value
}

// toQuestionList converts a text to a list of one question.
func toQuestionList(value any) any {
	value = parseList(value)
	if text, ok := value.(string); ok {
		return []any{map[string]any{"question": text}}
	}
	return value
}

// typeToGlob converts a file type of ripgrep (--type) to a glob.
func typeToGlob(value any) any {
	name, ok := value.(string)
	if !ok {
		return value
	}
	if endings, known := endingsOfType[name]; known {
		name = endings
	}
	return "*." + name
}

// endingsOfType maps file types to their endings, if these differ from the type's name.
var endingsOfType = map[string]string{
	"c": "{c,h}", "cpp": "{cc,cpp,cxx,hh,hpp,h}", "js": "{js,jsx,mjs,cjs}", "kotlin": "{kt,kts}", "markdown": "{md,markdown}", "md": "{md,markdown}",
	"py": "{py,pyi}", "python": "{py,pyi}", "ruby": "rb", "rust": "rs", "ts": "{ts,tsx,mts,cts}", "yaml": "{yml,yaml}",
}
