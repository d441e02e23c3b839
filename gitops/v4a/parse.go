package v4a

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/clip"
)

const (
	beginMarker       = "*** Begin Patch"
	endMarker         = "*** End Patch"
	addMarker         = "*** Add File: "
	deleteMarker      = "*** Delete File: "
	updateMarker      = "*** Update File: "
	moveMarker        = "*** Move to: "
	environmentMarker = "*** Environment ID:"
	endOfFileMarker   = "*** End of File"
	hunkMarker        = "@@"
)

// Parse parses a patch in its envelope. An error is a [*ParseError].
func Parse(text string) (Patch, error) {
	body, err := unwrap(text)
	if err != nil {
		return nil, err
	}
	p := &parser{rest: body}
	p.next()
	for p.next() {
		if err := p.readLine(); err != nil {
			return nil, err
		}
	}
	if err := p.finishSection(); err != nil {
		return nil, err
	}
	if len(p.patch) == 0 {
		return nil, p.errorHere("the patch has no sections; " + wantHeader)
	}
	return p.patch, nil
}

// unwrap returns the lines of a patch from its first marker on, without the last marker. It removes
// wrappings that models usually add, such as a heredoc.
func unwrap(text string) (string, error) {
	for {
		text = strings.TrimSpace(text)
		body, err := checkEnvelope(text)
		if err == nil {
			return body, nil
		}
		inner, ok := unwrapOnce(text)
		if !ok {
			return "", err
		}
		text = inner
	}
}

// unwrapOnce removes one wrapping: a heredoc with or without its program, a Markdown fence, or the
// first line of a notebook cell. isWrapped is false for text without one.
func unwrapOnce(text string) (inner string, isWrapped bool) {
	if inner, isWrapped = heredocBody(text); isWrapped {
		return inner, true
	}
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(first) == "%%bash" {
		return rest, true
	}
	end := strings.LastIndexByte(rest, '\n') + 1
	if strings.HasPrefix(first, "```") && strings.TrimSpace(rest[end:]) == "```" {
		return rest[:end], true
	}
	return "", false
}

// checkEnvelope checks the first and the last line of a patch. It returns the text without the last line.
func checkEnvelope(text string) (string, error) {
	first, _, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(first) != beginMarker {
		return "", &ParseError{Line: 1, Problem: fmt.Sprintf("a patch starts with the line %q, not %q", beginMarker, clip.Bytes(first, maxShownBytes))}
	}
	end := strings.LastIndexByte(text, '\n')
	last := strings.TrimSpace(text[end+1:])
	if last != endMarker {
		lines := strings.Count(text, "\n") + 1
		return "", &ParseError{Line: lines, Problem: fmt.Sprintf("a patch ends with the line %q, not %q", endMarker, clip.Bytes(last, maxShownBytes))}
	}
	return text[:end+1], nil
}

// Program is the name of the program by which commands apply patches.
const Program = "apply_patch"

// Programs lists the names by which models call Program.
var Programs = []string{Program, "applypatch"}

// heredocBody returns the body of a heredoc <<EOF, <<'EOF' or <<"EOF", with or without a program
// before it, up to a last line that ends in EOF. isHeredoc is false for any other text.
func heredocBody(text string) (body string, isHeredoc bool) {
	command, body, _ := strings.Cut(text, "\n")
	for _, program := range Programs {
		command = strings.TrimPrefix(command, program+" ")
	}
	opensHeredoc := slices.Contains([]string{"<<EOF", "<<'EOF'", `<<"EOF"`}, strings.TrimSuffix(command, "\r"))
	end := strings.LastIndexByte(body, '\n')
	if !opensHeredoc || end < 0 || !strings.HasSuffix(body, "EOF") {
		return "", false
	}
	return strings.TrimSuffix(body[:end], "\r"), true
}

// parser parses a patch line by line. A section lasts from its header to the next header. A hunk
// lasts from its first line to the next hunk or section.
type parser struct {
	rest   string
	line   string
	number int
	patch  Patch

	section *Section
	content strings.Builder // content of the current section, if it adds a file
	hunk    *Hunk

	hasEnvironment bool // the environment id was given
}

// next moves to the next line. It returns false at the end.
func (p *parser) next() bool {
	if p.rest == "" {
		return false
	}
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.line, p.rest = strings.TrimRight(line, "\r"), rest
	p.number++
	return true
}

// errorHere returns an error about the current line.
func (p *parser) errorHere(problem string) error {
	return &ParseError{Line: p.number, Problem: problem}
}

const wantHeader = `a section starts with "*** Add File: path", "*** Delete File: path" or "*** Update File: path"`

// readLine parses the line p.line: a header, or a line of the current section.
func (p *parser) readLine() error {
	isHeader, err := p.readHeader()
	if err != nil {
		return err
	}
	if isHeader {
		return nil
	}
	switch {
	case p.section == nil && strings.HasPrefix(strings.TrimSpace(p.line), environmentMarker):
		return p.readEnvironment()
	case p.section == nil || p.section.Op == Delete:
		return p.errorHere(fmt.Sprintf("%q is not a header; %s", clip.Bytes(p.line, maxShownBytes), wantHeader))
	case p.section.Op == Add:
		return p.readAddedLine()
	default:
		return p.readUpdateLine()
	}
}

// readHeader starts a section and returns true if the line is a header. Inside an update, a line that starts
// with a blank is context instead. A second end marker at the end of the patch counts as a header.
func (p *parser) readHeader() (isHeader bool, err error) {
	line := strings.TrimRightFunc(p.line, unicode.IsSpace)
	if p.section == nil || p.section.Op != Update {
		line = strings.TrimSpace(line)
	}
	if line == endMarker {
		if strings.TrimSpace(p.rest) == "" { // the model wrote the end marker twice; unwrap removed only one
			p.rest = ""
			return true, nil
		}
		return true, p.errorHere("text follows after " + endMarker + "; send one patch with all sections")
	}
	for _, h := range [...]struct {
		marker string
		op     Op
	}{{addMarker, Add}, {deleteMarker, Delete}, {updateMarker, Update}} {
		if name, ok := strings.CutPrefix(line, h.marker); ok {
			return true, p.openSection(h.op, name)
		}
	}
	return false, nil
}

// openSection finishes the current section and starts another.
func (p *parser) openSection(op Op, name string) error {
	if err := p.finishSection(); err != nil {
		return err
	}
	p.patch = append(p.patch, Section{Op: op, Path: name, Line: p.number})
	p.section = &p.patch[len(p.patch)-1]
	return nil
}

// finishSection checks and stores the current section, if there is one.
func (p *parser) finishSection() error {
	s := p.section
	if s == nil {
		return nil
	}
	switch s.Op {
	case Add:
		s.Content = p.content.String()
		p.content.Reset()
	case Update:
		if err := p.finishHunk(); err != nil {
			return err
		}
		if len(s.Hunks) == 0 {
			return &ParseError{Line: s.Line, Problem: fmt.Sprintf(
				"the update of %s has no hunk; to move a file unchanged, give one line of it as context", clip.Bytes(s.Path, maxShownBytes))}
		}
	}
	p.section = nil
	return nil
}

// readEnvironment checks the environment id, which may be given once, before the first section. It is ignored: a run has
// one work tree.
func (p *parser) readEnvironment() error {
	if strings.TrimSpace(p.line) == environmentMarker {
		return p.errorHere("the environment id is empty; leave the line out")
	}
	if p.hasEnvironment {
		return p.errorHere("the environment id stands there twice")
	}
	p.hasEnvironment = true
	return nil
}

// readAddedLine reads a line of an added file.
func (p *parser) readAddedLine() error {
	text, ok := strings.CutPrefix(p.line, "+")
	if !ok {
		return p.errorHere(fmt.Sprintf(`%q: every line of an added file starts with "+", an empty line too; otherwise %s`, clip.Bytes(p.line, maxShownBytes), wantHeader))
	}
	p.content.WriteString(text)
	p.content.WriteByte('\n')
	return nil
}

// readUpdateLine parses a line of an updated file: its new path, an "@@" line, an end-of-file marker,
// or a line of a hunk.
func (p *parser) readUpdateLine() error {
	line := strings.TrimRightFunc(p.line, unicode.IsSpace)
	s := p.section
	if name, ok := strings.CutPrefix(line, moveMarker); ok && s.MoveTo == "" && p.hunk == nil {
		s.MoveTo = name
		return nil
	}
	if line == hunkMarker {
		return p.openHunk("")
	}
	if context, ok := strings.CutPrefix(line, hunkMarker+" "); ok {
		return p.openHunk(context)
	}
	if line == endOfFileMarker {
		return p.closeHunk()
	}
	return p.readHunkLine()
}

// openHunk handles an "@@" line. It starts a hunk, or adds context to a hunk that has no lines yet.
func (p *parser) openHunk(context string) error {
	if p.hunk != nil && (len(p.hunk.Lines) > 0 || p.hunk.EndOfFile) {
		if err := p.finishHunk(); err != nil {
			return err
		}
	}
	if p.hunk == nil {
		p.hunk = &Hunk{Line: p.number}
	} else {
		p.hunk.hasSeveralContexts = true
	}
	if context != "" {
		p.hunk.Context = append(p.hunk.Context, context)
		p.hunk.contextLines = append(p.hunk.contextLines, p.number)
	}
	return nil
}

// closeHunk handles an end-of-file marker. It ignores a marker above the first hunk. In a bare
// diff, it also accepts a hunk without lines.
func (p *parser) closeHunk() error {
	switch {
	case p.hunk == nil:
		return nil
	case p.hunk.EndOfFile:
		return p.errorHere(endOfFileMarker + " stands there twice")
	case len(p.hunk.Lines) == 0 && !p.section.isBare:
		return p.errorHere(endOfFileMarker + " follows the last line of a hunk, and this hunk has no lines")
	}
	p.hunk.EndOfFile = true
	return nil
}

// finishHunk adds the current hunk to the section. A hunk without lines is an error, unless it has
// an end-of-file marker.
func (p *parser) finishHunk() error {
	if p.hunk == nil {
		return nil
	}
	if len(p.hunk.Lines) == 0 && !p.hunk.EndOfFile {
		return &ParseError{Line: p.hunk.Line, Problem: "the hunk has no lines"}
	}
	p.section.Hunks = append(p.section.Hunks, *p.hunk)
	p.hunk = nil
	return nil
}

// readHunkLine adds a line to the current hunk. The first hunk of a section may begin without "@@".
func (p *parser) readHunkLine() error {
	if p.hunk != nil && p.hunk.EndOfFile {
		if strings.TrimSpace(p.line) == "" {
			return nil
		}
		return p.errorHere(fmt.Sprintf("%q: after %s comes %q or a header", clip.Bytes(p.line, maxShownBytes), endOfFileMarker, hunkMarker))
	}
	line, ok := hunkLine(p.line)
	if !ok {
		return p.errorHere(fmt.Sprintf(
			`%q: a line of a hunk starts with " " (stays), "-" (goes) or "+" (comes); a new hunk starts with "@@" or "@@ " and a whole line of the file`, clip.Bytes(p.line, maxShownBytes)))
	}
	if p.hunk == nil {
		p.hunk = &Hunk{Line: p.number}
	}
	if len(p.hunk.Lines) == 0 {
		p.hunk.firstLine = p.number
	}
	p.hunk.Lines = append(p.hunk.Lines, line)
	return nil
}

// hunkLine parses a line of a hunk. An empty line is an empty context line.
func hunkLine(line string) (_ Line, isValid bool) {
	if line == "" {
		return Line{Kind: Keep}, true
	}
	switch k := Kind(line[0]); k {
	case Keep, Insert, Remove:
		return Line{Kind: k, Text: line[1:]}, true
	}
	return Line{}, false
}
