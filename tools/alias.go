package tools

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shellword"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// converters maps the shape of an argument to the function that converts values from other agents to that shape.
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

// renames returns synonyms that rename each argument of from to the argument to.
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

// withoutNamespace returns a tool's name without the namespace that some models put before it.
func withoutNamespace(name string) string {
	for _, group := range agentNamespaces {
		if rest, within := strings.CutPrefix(name, group+"."); within {
			return QualifiedName(group, rest)
		}
	}
	return strings.TrimPrefix(name, "functions.")
}

// convertArguments converts the arguments of a call to those of the tool. called is the tool's name in the call, which
// may be that of another agent's tool.
func convertArguments(tool, called string, arguments map[string]any) {
	asGlob := tool == dialect.GrepFiles && slices.Contains(dialect.NamesByAlias(withoutNamespace(called)), dialect.GlobTool)
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

// setMissing sets an argument unless it is present.
func setMissing(arguments map[string]any, name string, value any) {
	if _, exists := arguments[name]; !exists {
		arguments[name] = value
	}
}

// applySynonyms renames arguments and converts their values. It does not replace an argument that is present under its
// proper name.
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

// toCommandLine converts a list of words to one line for a shell. For ["bash", "-c", script] it returns the script. It
// returns other values unchanged.
func toCommandLine(value any) any {
	argv, isList := wordList(value)
	if !isList {
		return value
	}
	if len(argv) == 3 {
		isShell := slices.Contains([]string{"bash", "sh", "zsh", "dash"}, path.Base(argv[0]))
		if isShell && (argv[1] == "-c" || argv[1] == "-lc") {
			return argv[2]
		}
	}
	return shellword.Quote(argv...)
}

// toArgumentVector converts a line to the words that run it in a shell. If the line is a list of words in JSON, it
// returns that list.
func toArgumentVector(value any) any {
	line, isText := value.(string)
	if !isText {
		return value
	}
	if _, isList := wordList(value); isList {
		return parseList(value)
	}
	return []any{"sh", "-c", line}
}

// parseList parses a list that a model wrote as a text of JSON. It returns other values unchanged.
func parseList(value any) any {
	text, isText := value.(string)
	if !isText || !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return value
	}
	var list []any
	if json.Unmarshal([]byte(text), &list) != nil {
		return value
	}
	return list
}

// wordList returns value as a list of texts. isList is false if it is none, or empty.
func wordList(value any) (words []string, isList bool) {
	list, _ := parseList(value).([]any)
	for _, item := range list {
		word, isText := item.(string)
		if !isText {
			return nil, false
		}
		words = append(words, word)
	}
	return words, len(words) > 0
}

// planItems returns a function that converts a list of plan steps or todos from other agents. key is the field with
// an item's text here, others are the names of that field in other agents. unused are fields to remove.
func planItems(key string, others []string, unused ...string) func(any) any {
	return func(value any) any {
		items, isList := parseList(value).([]any)
		if !isList {
			return value
		}
		converted := make([]any, len(items))
		for i, item := range items {
			if text, isText := item.(string); isText {
				item = map[string]any{key: text, "status": "pending"}
			}
			if fields, isObject := item.(map[string]any); isObject {
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

// toList converts a text to a list of that text. It returns other values unchanged.
func toList(value any) any {
	value = parseList(value)
	if text, isText := value.(string); isText {
		return []any{text}
	}
	return value
}

// toQuestionList converts a text to a list of one question. It returns other values unchanged.
func toQuestionList(value any) any {
	value = parseList(value)
	if text, isText := value.(string); isText {
		return []any{map[string]any{"question": text}}
	}
	return value
}

// typeToGlob converts a file type of ripgrep (--type) to a glob. It returns other values unchanged.
func typeToGlob(value any) any {
	name, isText := value.(string)
	if !isText {
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
