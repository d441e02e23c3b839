package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// readPipe reads the scripts that commands write into the pipe of a shell, as in echo 'git push' | sh.
func (r *reader) readPipe(node syntax.Node, from origin) {
	pipe, ok := node.(*syntax.BinaryCmd)
	if !ok {
		return
	}
	if pipe.Op != syntax.Pipe && pipe.Op != syntax.PipeAll {
		return
	}
	shell, ok := shellReadingPipe(pipe.Y)
	if !ok {
		return
	}
	syntax.Walk(pipe.X, func(node syntax.Node) bool {
		if r.searchedForPipes++; r.searchedForPipes > maxPiped {
			r.reading.TooComplex = "too much is piped into shells"
		}
		if stmt, ok := node.(*syntax.Stmt); ok {
			if text := literalOutput(stmt); text != "" {
				r.readScript(text, from.startedBy(shell))
			}
		}
		return r.reading.TooComplex == ""
	})
}

// shellReadingPipe returns the name of the shell that reads its script from the statement's input, even
// if wrappers start the shell. It reports false if there is none.
func shellReadingPipe(stmt *syntax.Stmt) (name string, ok bool) {
	words := simpleCommandWords(stmt)
	for len(words) > 0 && words[0].Known {
		name := programName(words[0].Text)
		if slices.Contains(shells, name) {
			return name, readsInput(words[1:])
		}
		wrapper, ok := wrapperNamed(name)
		if !ok {
			break
		}
		start := wrapper.locateCommand(words[1:])
		words = words[1+min(start.index, len(words)-1):]
	}
	return "", false
}

// simpleCommandWords returns the words of a simple command, or nil for any other statement.
func simpleCommandWords(stmt *syntax.Stmt) []Word {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	var words []Word
	for _, arg := range call.Args {
		words = append(words, expandWord(arg)...)
	}
	return words
}

// literalOutput returns the text that a statement prints: by echo or printf, or from the here-documents of
// cat and tee. Other commands give "". Variables stay unexpanded.
func literalOutput(stmt *syntax.Stmt) string {
	words := simpleCommandWords(stmt)
	if len(words) == 0 {
		return ""
	}
	switch programName(words[0].Text) {
	case "echo":
		return echoOutput(words[1:])
	case "printf":
		return printfOutput(words[1:])
	case "cat", "tee":
		var text strings.Builder
		for _, document := range hereDocuments(stmt) {
			text.WriteString(document.Text + "\n")
		}
		return text.String()
	}
	return ""
}

// echoOutput returns the output of echo. Its options n, e and E do not matter.
func echoOutput(args []Word) string {
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && strings.Trim(args[0].Text, "-neE") == "" {
		args = args[1:]
	}
	return expandLineEnds(joinWords(args))
}

// printfOutput returns the output of printf in short: each argument replaces the next %s, or is
// appended if there is none. It knows no other format.
func printfOutput(args []Word) string {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	text := args[0].Text
	for _, arg := range args[1:] {
		before, after, ok := strings.Cut(text, "%s")
		if !ok {
			before, after = text, ""
		}
		text = before + arg.Text + after
	}
	return expandLineEnds(text)
}

// expandLineEnds replaces each \n in text by a line end.
func expandLineEnds(text string) string { return strings.ReplaceAll(text, `\n`, "\n") }

// hereDocuments returns the here-documents and here-strings of a statement.
func hereDocuments(stmt *syntax.Stmt) []Word {
	var words []Word
	for _, redirect := range stmt.Redirs {
		switch {
		case redirect.Op == syntax.WordHdoc:
			words = append(words, evaluateWord(redirect.Word))
		case redirect.Hdoc != nil:
			words = append(words, evaluateWord(redirect.Hdoc))
		}
	}
	return words
}
