package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// pipes reads the scripts that commands write into the pipe of a shell, as in echo 'git push' | sh.
func (r *reader) pipes(node syntax.Node, from origin) {
	pipe, ok := node.(*syntax.BinaryCmd)
	if !ok || pipe.Op != syntax.Pipe && pipe.Op != syntax.PipeAll {
		return
	}
	shell, ok := readingShell(pipe.Y)
	if !ok {
		return
	}
	syntax.Walk(pipe.X, func(node syntax.Node) bool {
		if r.piped++; r.piped > maxPiped {
			r.reading.TooComplex = "too much is piped into shells"
		}
		if stmt, ok := node.(*syntax.Stmt); ok {
			if text := written(stmt); text != "" {
				r.script(text, from.through(shell))
			}
		}
		return r.reading.TooComplex == ""
	})
}

// readingShell returns the name of the shell that reads its script from the statement's input, even
// if wrappers start the shell. It reports false if there is none.
func readingShell(stmt *syntax.Stmt) (name string, ok bool) {
	words := callOf(stmt)
	for len(words) > 0 && words[0].Known {
		name := base(words[0].Text)
		if shells[name] {
			return name, readsInput(words[1:])
		}
		w, ok := wrappers[name]
		if !ok {
			break
		}
		s := w.skip(words[1:])
		words = words[1+min(s.at, len(words)-1):]
	}
	return "", false
}

// callOf returns the words of a simple command, or nil for any other statement.
func callOf(stmt *syntax.Stmt) []Word {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	var words []Word
	for _, arg := range call.Args {
		words = append(words, wordsOf(arg)...)
	}
	return words
}

// written returns the output of echo and printf, and the here-documents of cat and tee. It is "" for
// other commands. Variables stay unexpanded.
func written(stmt *syntax.Stmt) string {
	words := callOf(stmt)
	if len(words) == 0 {
		return ""
	}
	switch base(words[0].Text) {
	case "echo":
		return echoed(words[1:])
	case "printf":
		return formatted(words[1:])
	case "cat", "tee":
		var all strings.Builder
		for _, document := range documents(stmt) {
			all.WriteString(document.Text + "\n")
		}
		return all.String()
	}
	return ""
}

// echoed returns the output of echo. Its options n, e and E do not matter.
func echoed(args []Word) string {
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && strings.Trim(args[0].Text, "-neE") == "" {
		args = args[1:]
	}
	return lines(textOf(args))
}

// formatted returns the output of printf in short: each argument replaces the next %s, or is
// appended if there is none. It knows no other format.
func formatted(args []Word) string {
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
	return lines(text)
}

// lines replaces each \n in text by a line end.
func lines(text string) string { return strings.ReplaceAll(text, `\n`, "\n") }

// documents returns the here-documents and here-strings of a statement.
func documents(stmt *syntax.Stmt) []Word {
	var all []Word
	for _, redirect := range stmt.Redirs {
		switch {
		case redirect.Op == syntax.WordHdoc:
			all = append(all, wordOf(redirect.Word))
		case redirect.Hdoc != nil:
			all = append(all, wordOf(redirect.Hdoc))
		}
	}
	return all
}
