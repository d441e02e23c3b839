package testresults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// maxLine is how many bytes of a line are read. Longer lines are cut.
const maxLine = 16 << 10

// maxEach is how many bytes are read at the beginning and at the end of an output.
const maxEach = 32 << 20

// outputParser reads one kind of output, line by line.
type outputParser interface {
	line(text string)
	// end returns the results, or nil if there are none.
	end() *Results
}

// Read parses a check's output for all formats at once, because a check may run several tools. It reads both ends
// of a long output. relative makes paths in a line relative to the check's tree, or is nil.
func Read(ctx context.Context, output io.ReadSeeker, relative func(line string) string) (results *Results, err error) {
	defer recoverAsError(&err)
	var formats []outputParser // none without output: making them takes a millisecond
	cut, err := forEachLine(ctx, output, func(text string) {
		if formats == nil {
			formats = newParsers()
		}
		if relative != nil {
			text = relative(text)
		}
		for _, f := range formats {
			f.line(text)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read test results: %w", err)
	}
	all := &Results{partial: cut}
	for _, f := range formats {
		if found := f.end(); found != nil {
			all.Join(found)
		}
	}
	return all, nil
}

// newParsers returns a parser for each format.
func newParsers() []outputParser {
	goEvents := &goJSON{packages: map[string]*goPackage{}, builds: goBuilds{}, remaining: maxNames}
	parsers := []outputParser{newGoText(), goEvents, &pytest{}, &tap{}}
	for _, tool := range readyPrinters() {
		parsers = append(parsers, &toolParser{layout: tool, section: tool.section})
	}
	return parsers
}

// forEachLine calls visit for each line of an output. cut means that the middle was skipped.
func forEachLine(ctx context.Context, output io.ReadSeeker, visit func(text string)) (cut bool, err error) {
	size, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	if _, err := output.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	if size <= 2*maxEach {
		return false, forLinesIn(ctx, output, visit)
	}
	if err := forLinesIn(ctx, io.LimitReader(output, maxEach), visit); err != nil {
		return true, err
	}
	if _, err := output.Seek(-maxEach, io.SeekEnd); err != nil {
		return true, err
	}
	first := true
	return true, forLinesIn(ctx, io.LimitReader(output, maxEach), func(text string) {
		if !first { // the beginning of the first line is missing
			visit(text)
		}
		first = false
	})
}

// forLinesIn calls visit for each line until ctx ends.
func forLinesIn(ctx context.Context, output io.Reader, visit func(text string)) error {
	lines := bufio.NewReaderSize(output, maxLine)
	for n := 0; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := nextLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		visit(text)
	}
}

// recoverAsError turns a panic into an error, because a bug in this package must not end a run.
func recoverAsError(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("read test results: %v", p)
	}
}

// nextLine returns the next line as a terminal would show it, without its line end. Of a line longer than the
// reader's buffer, it returns the beginning.
func nextLine(r *bufio.Reader) (string, error) {
	raw, err := r.ReadSlice('\n')
	text := strings.TrimRight(string(raw), "\r\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	isLastLine := errors.Is(err, io.EOF) && text != "" // without a line end
	if err != nil && !isLastLine {
		return "", err
	}
	if strings.ContainsAny(text, "\x1b\r") {
		text = markdown.Screen(text)
	}
	return text, nil
}

// parseNumber returns the number in a text, or 0 if there is none or it is too large.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 10_000_000 {
		return 0
	}
	return n
}

// withoutParents removes the groups from tests, because a group fails when one of its tests fails. separator is
// the text between a group's name and a test's.
func withoutParents(tests []Test, separator string) []Test {
	parent := map[string]bool{} // true for a group
	for _, t := range tests {
		parent[t.Name] = false
	}
	for _, t := range tests {
		for i := range t.Name {
			if !strings.HasPrefix(t.Name[i:], separator) {
				continue
			}
			if _, found := parent[t.Name[:i]]; found {
				parent[t.Name[:i]] = true
			}
		}
	}
	var leaves []Test
	for _, t := range tests {
		if !parent[t.Name] {
			leaves = append(leaves, t)
		}
	}
	return leaves
}
