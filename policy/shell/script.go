package shell

import (
	"errors"
	"fmt"
	"slices"
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

// parseScript parses a script. With an error it returns the part before the mistake.
func (r *reader) parseScript(script string) (file *syntax.File, err error) {
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
	for stmt, stmtErr := range r.parser.StmtsSeq(strings.NewReader(script)) {
		if stmtErr != nil {
			err = stmtErr
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
	return unary > maxNesting || countKeywords(script) > maxKeywords
}

// countKeywords counts the words in a script that may begin a nested command, even inside other words.
func countKeywords(script string) int {
	count := 0
	for _, word := range []string{"if", "while", "until", "case", "for", "time", "coproc", "function", "()", "select"} {
		count += strings.Count(script, word)
	}
	return count
}

// readScript reads a script that the programs of from start.
func (r *reader) readScript(script string, from origin) {
	if len(from.via) > maxDepth {
		r.reading.TooComplex = "programs start one another too many times"
		return
	}
	file, err := r.parseScript(script)
	r.readParsed(script, file, err, from)
}

// readParsed reads a parsed script. err is the error of parseScript.
func (r *reader) readParsed(script string, file *syntax.File, err error, from origin) {
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
				r.readStatement(s, from)
			}
			r.readPipe(node, from)
			return r.reading.TooComplex == ""
		})
	}
}

// readStatement reads the simple command of a statement. Its caller visits nested statements separately.
func (r *reader) readStatement(stmt *syntax.Stmt, from origin) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		r.noteAssignments(cmd.Assigns)
		if words := simpleCommandWords(stmt); len(words) > 0 {
			r.readCommand(words, from)
			r.readInput(stmt, words, from)
		}
	case *syntax.DeclClause:
		r.noteAssignments(cmd.Args)
		words := []Word{{cmd.Variant.Value, true}}
		for _, arg := range cmd.Args {
			words = append(words, declarationWord(arg))
		}
		r.readCommand(words, from)
	}
}

// declarationWord returns an argument of export and similar builtins as a word.
func declarationWord(a *syntax.Assign) Word {
	value := Word{Known: true}
	if a.Value != nil {
		value = evaluateWord(a.Value)
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

// noteAssignments sets ChangesDir if one of the assignments is to HOME.
func (r *reader) noteAssignments(assigns []*syntax.Assign) {
	for _, a := range assigns {
		if a.Name != nil && a.Name.Value == "HOME" {
			r.reading.ChangesDir = true
		}
	}
}

// readInput reads the here-documents of a shell without a script argument.
func (r *reader) readInput(stmt *syntax.Stmt, words []Word, from origin) {
	name := programName(words[0].Text)
	if !words[0].Known || !slices.Contains(shells, name) || !readsInput(words[1:]) {
		return
	}
	for _, document := range hereDocuments(stmt) {
		r.readIfKnown(document, from.startedBy(name))
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

// maxLooseWords is the longest command that readUnparsable records, in words.
const maxLooseWords = 16

// readUnparsable reads text that the parser rejects. Each word may begin a command, so it records one
// from there to the end of the line: it may record too many commands, but it misses none.
func (r *reader) readUnparsable(text string, from origin) {
	for line := range strings.FieldsFuncSeq(text, endsCommand) {
		words := knownWords(strings.FieldsFunc(line, separatesWords))
		for i := range words {
			if !r.recordCommand(words[i:min(i+maxLooseWords, len(words))], from) {
				return
			}
		}
	}
}

func endsCommand(c rune) bool { return strings.ContainsRune("\n;|&()`{}<>", c) }

func separatesWords(c rune) bool { return strings.ContainsRune(" \t\r\"'$\\", c) }
