package command

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/tools"
)

// patchPrograms lists the names by which models call the patch program.
var patchPrograms = []string{"apply_patch", "applypatch"}

// patchCommand is a command that only applies a patch.
type patchCommand struct {
	dir  string // folder that the command changes to first, or ""
	text string
}

// patchIn returns the patch of a command that does nothing else, unless patches are not applied here.
func (t *Tools) patchIn(argv []string) (patchCommand, bool) {
	if t.options.Patch == nil {
		return patchCommand{}, false
	}
	return patchOf(argv)
}

// patchOf returns the patch of a command in one of two forms, which are those of the reference implementation. Either the
// patch is the program's argument, or a shell script gives it as a heredoc, optionally after "cd DIR &&". The heredoc
// is taken literally. It returns false for all other commands, which go to the shell.
func patchOf(argv []string) (patchCommand, bool) {
	if len(argv) == 2 && slices.Contains(patchPrograms, argv[0]) {
		return patchCommand{text: argv[1]}, true
	}
	script, ok := shellScript(argv)
	if !ok || !slices.ContainsFunc(patchPrograms, func(name string) bool { return strings.Contains(script, name) }) {
		return patchCommand{}, false
	}
	return patchInScript(script)
}

// shellScript returns the script of a command that only runs a script in a shell.
func shellScript(argv []string) (string, bool) {
	last := len(argv) - 1
	if last < 2 || !slices.Contains([]string{"bash", "sh", "zsh"}, path.Base(argv[0])) {
		return "", false
	}
	flags := strings.Join(argv[1:last], " ")
	return argv[last], slices.Contains([]string{"-c", "-lc", "-l -c"}, flags)
}

// patchInScript returns the patch in a script. It does not parse the lines of the heredoc, which are no shell.
func patchInScript(script string) (patchCommand, bool) {
	head, text, delimiter, ok := splitHeredoc(script)
	if !ok {
		return patchCommand{}, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(head+"\n"+delimiter+"\n"), "")
	if err != nil || len(file.Stmts) != 1 {
		return patchCommand{}, false
	}
	found := patchCommand{text: text}
	run := file.Stmts[0]
	if both, ok := run.Cmd.(*syntax.BinaryCmd); ok {
		if both.Op != syntax.AndStmt || !isPlainStatement(run) || len(run.Redirs) > 0 {
			return patchCommand{}, false
		}
		if found.dir, ok = cdTarget(both.X); !ok {
			return patchCommand{}, false
		}
		run = both.Y
	}
	return found, appliesHeredoc(run, delimiter)
}

// maxHead is the maximum size of the parsed part of a script, in bytes.
const maxHead = 4 << 10

// splitHeredoc splits a script that ends with a heredoc into the part before the text, the text, and the delimiter,
// which is the last line. ok is false if the delimiter occurs earlier, or the head is too long.
func splitHeredoc(script string) (head, text, delimiter string, ok bool) {
	script = strings.TrimRight(script, " \t\n")
	operator := strings.Index(script[:min(len(script), maxHead)], "<<")
	if operator < 0 {
		return "", "", "", false
	}
	line, document, _ := strings.Cut(script[operator:], "\n")
	head = script[:operator] + line
	last := strings.LastIndexByte(document, '\n') + 1
	text, delimiter = document[:last], document[last:]
	if text == "" || delimiter == "" || strings.Contains(head, "\r") {
		return "", "", "", false
	}
	endsEarlier := strings.Contains("\n"+text, "\n"+delimiter+"\n")
	return head, text, delimiter, !endsEarlier && len(head)+len(delimiter) <= maxHead
}

// appliesHeredoc reports whether a statement runs the patch program with the heredoc as its only input.
func appliesHeredoc(s *syntax.Stmt, delimiter string) bool {
	arguments, ok := callOf(s)
	if !ok || len(arguments) != 1 || len(s.Redirs) != 1 {
		return false
	}
	redirect := s.Redirs[0]
	isHeredocOfInput := redirect.Op == syntax.Hdoc && redirect.N == nil && redirect.Hdoc == nil
	word, ok := literalWord(redirect.Word)
	return ok && word == delimiter && isHeredocOfInput && slices.Contains(patchPrograms, arguments[0].Lit())
}

// callOf returns the words of a simple command without assignments.
func callOf(s *syntax.Stmt) ([]*syntax.Word, bool) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || !isPlainStatement(s) || len(call.Assigns) > 0 {
		return nil, false
	}
	return call.Args, true
}

// isPlainStatement reports whether a statement is neither negated nor in the background.
func isPlainStatement(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && !s.Disown && !s.Semicolon.IsValid()
}

// cdTarget returns the directory of a cd statement.
func cdTarget(s *syntax.Stmt) (dir string, ok bool) {
	arguments, ok := callOf(s)
	if !ok || len(arguments) != 2 || arguments[0].Lit() != "cd" || len(s.Redirs) > 0 {
		return "", false
	}
	dir, ok = literalWord(arguments[1])
	return dir, ok && dir != "" && !strings.HasPrefix(dir, "-")
}

// literalWord returns the text of a word, or false if a shell might expand it.
func literalWord(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	switch part := word.Parts[0].(type) {
	case *syntax.Lit:
		return part.Value, strings.IndexFunc(part.Value, isSpecialRune) < 0
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		if len(part.Parts) != 1 || part.Dollar {
			return "", false
		}
		text, ok := part.Parts[0].(*syntax.Lit)
		if !ok {
			return "", false
		}
		return text.Value, !strings.Contains(text.Value, `\`)
	}
	return "", false
}

// isSpecialRune reports whether a character may be special to a shell.
func isSpecialRune(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,:@%=", r)
}

// barePatch matches a patch in place of a command, with or without a heredoc that no program reads. A shell would do
// nothing with the heredoc and report success.
var barePatch = lazyregexp.New(`^\s*(?:<<-?\s*['"]?\w+['"]?[ \t]*\r?\n\s*)?\*\*\* Begin Patch[ \t]*\r?\n`)

// misplacedPatch returns the error for a bare patch in place of a command, or "". The words are those of the reference
// implementation.
func misplacedPatch(argv []string) string {
	text := argv[0]
	if script, ok := shellScript(argv); ok {
		text = script
	} else if len(argv) > 1 {
		return ""
	}
	if !barePatch().MatchString(text) {
		return ""
	}
	return `patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"], or call the tool apply_patch`
}

// applyPatch applies a patch, with paths relative to the command's folder.
func (t *Tools) applyPatch(ctx context.Context, p patchCommand, workdir string) (tools.Result, error) {
	dir, problem := t.resolveFolder(workdir)
	if problem != "" {
		return tools.Refuse(problem), nil
	}
	if dir = filepath.Join(dir, p.dir); filepath.IsAbs(p.dir) {
		dir = p.dir
	}
	result, err := t.options.Patch(ctx, dir, p.text)
	result.Output = strings.TrimSuffix(result.Output, "\n") + "\n"
	return result, err
}
