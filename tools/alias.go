package tools

import (
	"slices"
	"strings"
)

// alias is a name that other agents give to a tool of ours. Which names and
// shapes exist: the ChatGPT-OAuth provider's name mapping, Codex's older tools,
// Claude Code and opencode.
type alias struct {
	names   []string // lower case: agents differ in capitals
	targets []string // tools that do the same; the first that is offered answers
}

var aliases = []alias{
	{
		names:   []string{"bash", "sh", "shell", "shell_command", "local_shell", "container.exec", "command", "execute", "run", "run_command", "exec", "exec_command"},
		targets: []string{"exec_command", "shell_command", "shell"},
	},
	{
		names:   []string{"todowrite", "todo_write", "todo", "plan"},
		targets: []string{"update_plan"},
	},
	{
		names:   []string{"applypatch", "patch"},
		targets: []string{"apply_patch"},
	},
	{
		names:   []string{"read"},
		targets: []string{"read_file"},
	},
}

// synonyms are the shapes in which a tool's arguments come from models that
// learned another tool, in the order in which they are tried.
var synonyms = map[string][]synonym{
	"exec_command": {
		{"cmd", "cmd", commandLine},
		{"command", "cmd", commandLine},
		{"script", "cmd", commandLine},
		{"cwd", "workdir", nil},
		{"timeout", "timeout_ms", nil},
	},
	"shell_command": {
		{"command", "command", commandLine},
		{"cmd", "command", commandLine},
		{"script", "command", commandLine},
		{"cwd", "workdir", nil},
		{"timeout", "timeout_ms", nil},
	},
	"shell": {
		{"command", "command", argumentVector},
		{"cmd", "command", argumentVector},
		{"script", "command", argumentVector},
		{"cwd", "workdir", nil},
		{"timeout", "timeout_ms", nil},
	},
	"update_plan": {
		{"plan", "plan", planSteps},
		{"todos", "plan", planSteps},
		{"steps", "plan", planSteps},
	},
	"apply_patch": {
		{"patch", "input", nil},
		{"patchText", "input", nil},
	},
	"read_file": {
		{"path", "file_path", nil},
		{"filePath", "file_path", nil},
	},
}

// synonym moves the value of an argument, unless its place is taken already.
type synonym struct {
	from, to string
	convert  func(any) any // nil leaves the value as it is
}

// aliasTargets are the tools that an alias stands for.
func aliasTargets(name string) []string {
	name = strings.ToLower(name)
	for _, known := range aliases {
		if slices.Contains(known.names, name) {
			return known.targets
		}
	}
	return nil
}

// translate brings the arguments of a call of the named tool into its shape.
func translate(tool string, arguments map[string]any) {
	for _, s := range synonyms[tool] {
		value, there := arguments[s.from]
		if !there {
			continue
		}
		if s.from != s.to {
			if _, taken := arguments[s.to]; taken {
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

// commandLine makes one shell line of an argument vector. A shell that was
// asked to run a script is left out of it.
func commandLine(value any) any {
	argv, ok := words(value)
	if !ok {
		return value
	}
	if len(argv) == 3 && isShell(argv[0]) && (argv[1] == "-c" || argv[1] == "-lc") {
		return argv[2]
	}
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// argumentVector makes a shell's argument vector of one line.
func argumentVector(value any) any {
	line, ok := value.(string)
	if !ok {
		return value
	}
	return []any{"sh", "-c", line}
}

func words(value any) ([]string, bool) {
	list, ok := value.([]any)
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

func isShell(program string) bool {
	switch program[strings.LastIndexByte(program, '/')+1:] {
	case "bash", "sh", "zsh", "dash":
		return true
	}
	return false
}

// quote makes one word of the shell's language (POSIX 2.2.2) of any text.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// planSteps turns todo items into plan steps.
func planSteps(value any) any {
	items, ok := value.([]any)
	if !ok {
		return value
	}
	steps := make([]any, len(items))
	for i, item := range items {
		steps[i] = planStep(item)
	}
	return steps
}

func planStep(item any) any {
	if text, ok := item.(string); ok {
		return map[string]any{"step": text, "status": "pending"}
	}
	todo, ok := item.(map[string]any)
	if !ok {
		return item
	}
	if content, ok := todo["content"]; ok {
		if _, taken := todo["step"]; !taken {
			todo["step"] = content
			delete(todo, "content")
		}
	}
	for _, unused := range []string{"id", "activeForm", "priority"} {
		delete(todo, unused)
	}
	return todo
}
