package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// maxFrames is the maximum number of reported frames of a stack.
const maxFrames = 10

// errorPatterns contains expressions for places in stacks, and for names in scripts.
type errorPatterns struct{ frame, parsing, place, callee, method *regexp.Regexp }

// regexps returns the patterns. It compiles them at the first call.
var regexps = sync.OnceValue(func() errorPatterns {
	return errorPatterns{
		frame:   regexp.MustCompile(`^    at (.*) \((exec_main\.mjs:\d+:\d+)\)$`),
		parsing: regexp.MustCompile(`^    at exec_main\.mjs:(\d+):(\d+)$`),
		place:   regexp.MustCompile(`exec_main\.mjs:(\d+):(\d+)`),
		callee:  regexp.MustCompile(`[\p{L}_$][\p{L}\p{N}_$]*(?:\s*\.\s*#?[\p{L}_$][\p{L}\p{N}_$]*)*\s*$`),
		method:  regexp.MustCompile(`\btools\s*\.\s*([A-Za-z_$][\w$]*)\s*\(`),
	}
})

// Errors of the interpreter that describeError rewords.
const (
	noFunction = "TypeError: not a function"
	noMemory   = "RangeError: out of memory"
)

// describeError returns a script's error with its stack, in a form that models know. A syntax error gets only its line
// and column. words is the error's text, source the script.
func describeError(words, stack, source string) string {
	lines := strings.Split(strings.TrimSuffix(stack, "\n"), "\n")
	if place := regexps().parsing.FindStringSubmatch(lines[0]); place != nil && strings.HasPrefix(words, "SyntaxError") {
		return fmt.Sprintf("%s (line %s, column %s)", words, place[1], place[2])
	}
	switch words {
	case noFunction:
		words = nameCallee(words, stack, source)
	case noMemory:
		words += fmt.Sprintf(": a script has %d MiB", memory>>20)
	}
	frames := 0
	for _, line := range lines {
		at := regexps().frame.FindStringSubmatch(line)
		if at == nil || frames == maxFrames {
			continue
		}
		frames++
		words += "\n    at " + formatPlace(at[1], at[2])
	}
	return words
}

// formatPlace returns a place in a stack with the name of its function, unless that is anonymous.
func formatPlace(function, place string) string {
	if function == "<anonymous>" {
		return place
	}
	return function + " (" + place + ")"
}

// nameCallee returns the error "not a function" with the name of the called value, which the interpreter does not give.
// If it cannot find the name, it returns words.
func nameCallee(words, stack, source string) string {
	place := regexps().place.FindStringSubmatch(stack)
	if place == nil {
		return words
	}
	line, _ := strconv.Atoi(place[1])
	column, _ := strconv.Atoi(place[2])
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) {
		return words
	}
	before := []rune(strings.TrimSuffix(lines[line-1], "\r"))
	name := regexps().callee.FindString(string(before[:min(max(column-1, 0), len(before))]))
	if name = strings.Join(strings.Fields(name), ""); name == "" {
		return words
	}
	return "TypeError: " + name + " is not a function"
}
