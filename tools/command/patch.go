package command

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/tools"
)

// patchCommand is a command that only applies a patch.
type patchCommand struct {
	dir  string // folder that the command changes to first, or ""
	text string
}

// patchIn returns the patch of a command that only applies a patch. isPatch is false for other commands, and if
// Options.Patch is nil.
func (t *Tools) patchIn(argv []string) (p patchCommand, isPatch bool) {
	if t.options.Patch == nil {
		return patchCommand{}, false
	}
	return patchOf(argv)
}

// patchOf returns the patch of a command that only applies a patch, in one of the reference implementation's two forms.
// Either the patch is the program's argument, or a shell script contains it as a heredoc, optionally after "cd DIR &&".
// The heredoc is not expanded. isPatch is false for all other commands.
func patchOf(argv []string) (p patchCommand, isPatch bool) {
	if len(argv) == 2 && slices.Contains(v4a.Programs, argv[0]) {
		return patchCommand{text: argv[1]}, true
	}
	script, isScript := shellScript(argv)
	namesProgram := slices.ContainsFunc(v4a.Programs, func(name string) bool { return strings.Contains(script, name) })
	if !isScript || !namesProgram {
		return patchCommand{}, false
	}
	return patchInScript(script)
}

// shellScript returns the script of a command such as bash -c SCRIPT. isScript is false for other commands.
func shellScript(argv []string) (script string, isScript bool) {
	last := len(argv) - 1
	if last < 2 || !slices.Contains([]string{"bash", "sh", "zsh"}, path.Base(argv[0])) {
		return "", false
	}
	flags := strings.Join(argv[1:last], " ")
	return argv[last], slices.Contains([]string{"-c", "-lc", "-l -c"}, flags)
}

// patchInScript returns the patch of a shell script that only applies a patch. It does not parse the heredoc's text as
// shell.
func patchInScript(script string) (p patchCommand, isPatch bool) {
	head, text, delimiter, hasHeredoc := splitHeredoc(script)
	if !hasHeredoc {
		return patchCommand{}, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(head+"\n"+delimiter+"\n"), "")
	if err != nil || len(file.Stmts) != 1 {
		return patchCommand{}, false
	}
	p.text = text
	statement := file.Stmts[0]
	if pair, isPair := statement.Cmd.(*syntax.BinaryCmd); isPair {
		if pair.Op != syntax.AndStmt || !isPlainStatement(statement) || len(statement.Redirs) > 0 {
			return patchCommand{}, false
		}
		var isCd bool
		if p.dir, isCd = cdTarget(pair.X); !isCd {
			return patchCommand{}, false
		}
		statement = pair.Y
	}
	return p, appliesHeredoc(statement, delimiter)
}

// maxHead is the maximum size of the parsed part of a script, in bytes.
const maxHead = 4 << 10

// splitHeredoc splits a script that ends with a heredoc into the lines before its text, the text, and the delimiter, which
// is the last line. found is false if there is no heredoc, if the delimiter occurs earlier, or if the head is too long.
func splitHeredoc(script string) (head, text, delimiter string, found bool) {
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
	words, isCommand := wordsOf(s)
	if !isCommand || len(words) != 1 || len(s.Redirs) != 1 {
		return false
	}
	redirect := s.Redirs[0]
	isHeredocOfInput := redirect.Op == syntax.Hdoc && redirect.N == nil && redirect.Hdoc == nil // its text was cut off
	word, isLiteral := literalWord(redirect.Word)
	hasDelimiter := isLiteral && word == delimiter
	return isHeredocOfInput && hasDelimiter && slices.Contains(v4a.Programs, words[0].Lit())
}

// wordsOf returns the words of a statement that is a simple command. isCommand is false for other statements, and for a
// command with assignments.
func wordsOf(s *syntax.Stmt) (words []*syntax.Word, isCommand bool) {
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if !isCall || !isPlainStatement(s) || len(call.Assigns) > 0 {
		return nil, false
	}
	return call.Args, true
}

// isPlainStatement reports whether a statement has no modifiers: it is neither negated nor in the background, and does
// not end with a semicolon.
func isPlainStatement(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && !s.Disown && !s.Semicolon.IsValid()
}

// cdTarget returns DIR of the statement cd DIR. isCd is false for other statements.
func cdTarget(s *syntax.Stmt) (dir string, isCd bool) {
	words, isCommand := wordsOf(s)
	if !isCommand || len(words) != 2 || words[0].Lit() != "cd" || len(s.Redirs) > 0 {
		return "", false
	}
	dir, isLiteral := literalWord(words[1])
	isFolder := dir != "" && !strings.HasPrefix(dir, "-")
	return dir, isLiteral && isFolder
}

// literalWord returns the text of a word. isLiteral is false if a shell might expand the word.
func literalWord(word *syntax.Word) (text string, isLiteral bool) {
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
		quoted, isPlain := part.Parts[0].(*syntax.Lit)
		if !isPlain {
			return "", false
		}
		return quoted.Value, !strings.Contains(quoted.Value, `\`)
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

// misplacedPatch returns the refusal of a bare patch that a model wrote instead of a command, or "". The words are those
// of the reference implementation.
func misplacedPatch(argv []string) string {
	text := argv[0]
	if script, isScript := shellScript(argv); isScript {
		text = script
	} else if len(argv) > 1 {
		return ""
	}
	if !barePatch().MatchString(text) {
		return ""
	}
	return `patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"], or call the tool apply_patch`
}

// applyPatch applies the patch of a command whose working directory is workdir.
func (t *Tools) applyPatch(ctx context.Context, p patchCommand, workdir string) (tools.Result, error) {
	dir, problem := t.resolveFolder(workdir)
	if problem != "" {
		return tools.Refuse(problem), nil
	}
	if filepath.IsAbs(p.dir) {
		dir = p.dir
	} else {
		dir = filepath.Join(dir, p.dir)
	}
	result, err := t.options.Patch(ctx, dir, p.text)
	result.Output = strings.TrimSuffix(result.Output, "\n") + "\n"
	return result, err
}
