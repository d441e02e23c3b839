package shell

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxNesting is how deeply brackets and operators of a script may nest: the
	// parser calls itself for each.
	maxNesting = 500
	// maxKeywords bounds the keywords of a script, since each recurses in the parser.
	maxKeywords = 5_000
)

var (
	errTooLong   = errors.New("it is too long")
	errTooNested = errors.New("it is nested too deeply")
)

// parse parses a script. With an error it returns the part before the mistake.
func (r *reader) parse(script string) (file *syntax.File, err error) {
	switch {
	case len(script) > maxScript:
		return nil, errTooLong
	case tooNested(script):
		return nil, errTooNested
	}
	defer func() {
		if p := recover(); p != nil { // hostile text that makes the parser panic must not end agent-ci
			err = fmt.Errorf("the parser failed: %v", p)
		}
	}()
	file = &syntax.File{}
	for stmt, mistake := range r.parser.StmtsSeq(strings.NewReader(script)) {
		if mistake != nil {
			err = mistake
			continue
		}
		file.Stmts = append(file.Stmts, stmt)
	}
	return file, err
}

// tooNested reports whether a script may nest too deeply for the parser, which recurses. It
// overestimates, because it also counts brackets in quotes. readUnparsable reads such a script.
func tooNested(script string) bool {
	depth, unary := 0, 0 // open brackets; operators in a row, since the parser recurses for each
	for i := range len(script) {
		switch script[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		case '~', '!', '-', '+':
			unary++
			continue
		}
		if depth > maxNesting || unary > maxNesting {
			return true
		}
		unary = 0
	}
	return unary > maxNesting || keywords(script) > maxKeywords
}

// keywords counts the words in a script that may begin a nested command, even inside other words.
func keywords(script string) int {
	count := 0
	for _, word := range []string{"if", "while", "until", "case", "for", "time", "coproc", "function", "()", "select"} {
		count += strings.Count(script, word)
	}
	return count
}

// script reads a script that the programs of from start.
func (r *reader) script(script string, from origin) {
	if len(from.via) > maxDepth {
		r.reading.TooComplex = "programs start one another too many times"
		return
	}
	file, err := r.parse(script)
	r.read(script, file, err, from)
}

// read reads a parsed script. err is the error of parse.
func (r *reader) read(script string, file *syntax.File, err error, from origin) {
	if errors.Is(err, errTooLong) {
		r.reading.TooComplex = err.Error()
		return
	}
	if err != nil {
		// A shell runs the part before a mistake, and it may accept more than this parser.
		r.readUnparsable(script, from)
	}
	if file == nil {
		return
	}
	for _, stmt := range file.Stmts {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			if s, ok := node.(*syntax.Stmt); ok {
				r.statement(s, from)
			}
			r.pipes(node, from)
			return r.reading.TooComplex == ""
		})
	}
}

// statement reads the simple command of a statement. Its caller visits nested statements separately.
func (r *reader) statement(stmt *syntax.Stmt, from origin) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		r.assignments(cmd.Assigns)
		if words := callOf(stmt); len(words) > 0 {
			r.command(words, from)
			r.input(stmt, words, from)
		}
	case *syntax.DeclClause:
		r.assignments(cmd.Args)
		words := []Word{{cmd.Variant.Value, true}}
		for _, arg := range cmd.Args {
			words = append(words, declarationWord(arg))
		}
		r.command(words, from)
	}
}

// declarationWord returns an argument of export and similar builtins as a word.
func declarationWord(a *syntax.Assign) Word {
	value := Word{Known: true}
	if a.Value != nil {
		value = wordOf(a.Value)
	}
	value.Known = value.Known && a.Index == nil && a.Array == nil
	if a.Name == nil {
		return value
	}
	if a.Naked {
		return Word{a.Name.Value, true}
	}
	return Word{a.Name.Value + "=" + value.Text, value.Known}
}

// assignments sets ChangesDir if one of the assignments is to HOME.
func (r *reader) assignments(assigns []*syntax.Assign) {
	for _, a := range assigns {
		if a.Name != nil && a.Name.Value == "HOME" {
			r.reading.ChangesDir = true
		}
	}
}

// input reads the here-documents of a shell without a script argument.
func (r *reader) input(stmt *syntax.Stmt, words []Word, from origin) {
	name := base(words[0].Text)
	if !words[0].Known || !shells[name] || len(words) > 1 && !readsInput(words[1:]) {
		return
	}
	for _, document := range documents(stmt) {
		r.readCertain(document, from.through(name))
	}
}

// readsInput reports whether a shell with these arguments reads its script from standard input.
func readsInput(args []Word) bool {
	for _, arg := range args {
		if arg.Text == "-s" || arg.Text == "-" {
			return true
		}
		if !strings.HasPrefix(arg.Text, "-") {
			return false
		}
	}
	return true
}

// maxLoose is the longest command that readUnparsable records, in words.
const maxLoose = 16

// readUnparsable reads text that the parser rejects. It records a command from every word on: it may
// find too many commands, but it misses none.
func (r *reader) readUnparsable(text string, from origin) {
	for line := range strings.FieldsFuncSeq(text, endsCommand) {
		words := literals(strings.FieldsFunc(line, isSpace))
		for i := range words {
			if !r.record(words[i:min(i+maxLoose, len(words))], from) {
				return
			}
		}
	}
}

func endsCommand(c rune) bool { return strings.ContainsRune("\n;|&()`{}<>", c) }

func isSpace(c rune) bool { return strings.ContainsRune(" \t\r\"'$\\", c) }
