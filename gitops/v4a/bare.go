package v4a

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// ParseDiff parses the operation of an apply_patch_call: a path and a diff without an envelope. The
// diff of a created file has only "+" lines. The diff of a deleted file is ignored. An error is a
// [*ParseError].
func ParseDiff(op Op, path, diff string) (Patch, error) {
	p := &parser{rest: diff, section: &Section{Op: op, Path: path, isBare: true, ending: "\n"}}
	if strings.Contains(diff, "\r\n") {
		p.section.ending = "\r\n"
	}
	var err error
	switch op {
	case Add:
		err = p.readBareContent()
	case Update:
		err = p.readBareHunks()
	case Delete: // its diff is ignored
	default:
		return nil, fmt.Errorf("parse diff of %s: unknown operation %q", path, op)
	}
	if err != nil {
		return nil, err
	}
	return Patch{*p.section}, nil
}

// readBareContent reads the content of a created file. It joins the lines with the line ending of
// the diff. The last line gets no ending.
func (p *parser) readBareContent() error {
	var lines []string
	for p.next() && !p.atBareEnd() {
		text, ok := strings.CutPrefix(p.line, "+")
		if !ok {
			return p.errorHere(fmt.Sprintf(`%q: every line of a created file starts with "+", an empty line too`, clip.Bytes(p.line, maxShownBytes)))
		}
		lines = append(lines, text)
	}
	p.section.Content = strings.Join(lines, p.section.ending)
	return nil
}

// readBareHunks reads the hunks of an updated file. An empty diff means no change.
func (p *parser) readBareHunks() error {
	isEmpty := p.rest == ""
	for p.next() && !p.atBareEnd() {
		if err := p.readBareLine(); err != nil {
			return err
		}
	}
	s := p.section
	if err := p.finishHunk(); err != nil {
		return err
	}
	if len(s.Hunks) == 0 && !isEmpty {
		return &ParseError{Line: 1, Problem: `the diff has no hunk; it is bare: no "*** Begin Patch", no file headers, only "@@" lines and lines that start with " ", "-" or "+"`}
	}
	return nil
}

// atBareEnd reports whether the line is a marker of an envelope, at which the diff ends.
func (p *parser) atBareEnd() bool {
	return slices.ContainsFunc([]string{endMarker, addMarker, deleteMarker, updateMarker}, func(marker string) bool {
		return strings.HasPrefix(p.line, strings.TrimSuffix(marker, " "))
	})
}

// readBareLine parses a line of a bare diff.
func (p *parser) readBareLine() error {
	if p.line == hunkMarker {
		return p.openHunk("")
	}
	if context, ok := strings.CutPrefix(p.line, hunkMarker+" "); ok {
		return p.openHunk(strings.TrimRight(context, " \t"))
	}
	if strings.HasPrefix(p.line, endOfFileMarker) {
		return p.closeHunk()
	}
	return p.readHunkLine()
}
