// Package shell finds the commands in argument vectors and shell scripts. It knows the shell's
// grammar and the programs that start others. It runs and expands nothing, and decides nothing
// about the commands.
package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxDepth is the number of programs that may start one another before reading stops, like in the
	// reference implementation.
	maxDepth = 8
	// maxCommands bounds the recorded commands, and so the time.
	maxCommands = 20_000
	// maxPiped bounds the statements searched before pipes into shells. Long pipelines would
	// otherwise be searched once per pipe.
	maxPiped = 200_000
	// maxScript is the longest script in bytes: Linux starts no program with a
	// longer argument.
	maxScript = 128 << 10
)

// Reading is the result of parsing a command line.
type Reading struct {
	// Plain lists the commands of a plain list: literal words, joined by &&, ||, ; and |. It is nil for
	// anything else.
	Plain [][]string
	// Unclear names the first element outside a plain list.
	Unclear string
	// Commands lists the commands at any depth, in order: in control flow and substitutions, and
	// behind programs that start others.
	Commands []Command
	// TooComplex is the reason why reading stopped early: something is nested too deeply or too long. It is
	// "" if everything was read.
	TooComplex string
	// ChangesDir reports a change of the working directory or HOME. Relative paths are then unknown.
	ChangesDir bool
}

// Command is a simple command.
type Command struct {
	Words []Word
	// Via lists the programs that start the command, outermost first.
	Via []string
	// Top is the index in Reading.Plain of the command or its outermost starter, or -1.
	Top int
}

// Prefix returns the command's words up to the first uncertain one.
func (c Command) Prefix() []string {
	var prefix []string
	for _, w := range c.Words {
		if !w.Known {
			break
		}
		prefix = append(prefix, w.Text)
	}
	return prefix
}

// String returns the command as one line for people.
func (c Command) String() string { return joinWords(c.Words) }

// ReadArgv reads an argument vector, and the script of a shell with -c in it.
func ReadArgv(argv []string) Reading {
	if len(argv) == 0 {
		return Reading{Unclear: "there is no command"}
	}
	r := newReader()
	words := knownWords(argv)
	if script, ok := inlineScript(words[1:]); ok && slices.Contains(shells, programName(argv[0])) {
		r.recordCommand(words, origin{top: -1})
		r.readOutermost(script.Text, origin{via: []string{programName(argv[0])}, top: -1})
		return r.reading
	}
	r.reading.Plain = [][]string{argv}
	r.readCommand(words, origin{top: 0})
	return r.reading
}

// ReadScript reads the script of a shell. Commands excludes the shell itself.
func ReadScript(script string) Reading {
	r := newReader()
	r.readOutermost(script, origin{top: -1})
	return r.reading
}

// reader collects a Reading.
type reader struct {
	reading          Reading
	parser           *syntax.Parser
	searchedForPipes int // statements searched before pipes into shells, up to maxPiped
}

func newReader() *reader {
	return &reader{parser: syntax.NewParser(syntax.Variant(syntax.LangBash))}
}

// origin is the chain of programs that start a command.
type origin struct {
	via []string // as in Command
	top int      // as in Command
}

// startedBy returns the origin of commands that program starts.
func (o origin) startedBy(program string) origin {
	via := append(o.via[:len(o.via):len(o.via)], program)
	return origin{via, o.top}
}

// readOutermost reads the outermost script. If the script is a plain list, its commands get their index in it.
func (r *reader) readOutermost(script string, outer origin) {
	file, err := r.parseScript(script)
	r.reading.Plain, r.reading.Unclear = plainList(file, err)
	if r.reading.Plain == nil {
		r.readParsed(script, file, err, outer)
		return
	}
	for i, argv := range r.reading.Plain {
		r.readCommand(knownWords(argv), origin{outer.via, i})
	}
	for _, stmt := range file.Stmts { // a plain list may still pipe a script into a shell
		syntax.Walk(stmt, func(node syntax.Node) bool {
			r.readPipe(node, origin{outer.via, -1})
			return r.reading.TooComplex == ""
		})
	}
}

// recordCommand adds a command. It reports false beyond maxCommands.
func (r *reader) recordCommand(words []Word, from origin) bool {
	if len(r.reading.Commands) >= maxCommands {
		r.reading.TooComplex = "there are too many commands in it"
		return false
	}
	r.reading.Commands = append(r.reading.Commands, Command{Words: words, Via: from.via, Top: from.top})
	return true
}

// programName returns the name of a program without its folder.
func programName(program string) string {
	return program[strings.LastIndexByte(program, '/')+1:]
}
