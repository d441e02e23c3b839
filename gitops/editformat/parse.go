package editformat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Parse parses an answer. It never fails: text outside complete blocks is ignored.
func Parse(f Format, text string) Answer {
	p := &parser{format: f, lines: strings.Split(text, "\n")}
	for i, line := range p.lines {
		p.lines[i] = strings.TrimSuffix(line, "\r")
	}
	for p.at < len(p.lines) {
		p.readNext()
	}
	if p.unclearFence > 0 && p.requestCount() > p.requestsBefore {
		p.problem(p.unclearFence-1, "the fence that opens there has fences of its own, and so it is not clear what stands in it; put it between longer ones")
	}
	if p.skippedFence.why != "" && p.requestCount()+len(p.answer.Reads) == 0 {
		p.problem(p.skippedFence.line, "%s", p.skippedFence.why)
	}
	p.answer.Reads = v4a.Distinct(p.answer.Reads)
	return p.answer
}

// parser reads an answer line by line.
type parser struct {
	format Format
	lines  []string
	at     int
	last   string // path of the previous edit
	named  bool   // an edit in the current fence named its path
	answer Answer

	unclearFence   int // line, from 1, of the first skipped fence whose end is doubtful; or 0
	requestsBefore int // number of edits and commands at that time
	skippedFence   struct {
		line int
		why  string
	} // the last block that was treated as an example, but may be none
}

// requestCount returns the number of edits and commands so far.
func (p *parser) requestCount() int { return len(p.answer.Edits) + len(p.answer.Commands) }

// readNext handles what begins at the current line: a block, a fence, or a line of text.
func (p *parser) readNext() {
	p.named = false
	if p.beginsBlock(p.at) && !isCode(p.lines[p.at]) {
		p.readBlock()
		return
	}
	f, ok := parseFence(p.lines[p.at])
	switch {
	case !ok:
		p.at++
	case p.format == Diff && p.holdsBlocks(f):
		p.readBlocks(f)
	default:
		p.readFence(f)
	}
}

// shownProblems is the largest number of problems reported. Fixing one often fixes others.
const shownProblems = 8

func (p *parser) problem(line int, format string, args ...any) {
	if len(p.answer.Problems) < shownProblems {
		p.answer.Problems = append(p.answer.Problems, fmt.Sprintf("Line %d of the answer: ", line+1)+fmt.Sprintf(format, args...))
	}
}

// addEdit adds an edit. Without a path, it uses the path of the previous edit.
func (p *parser) addEdit(line int, path string, e Edit) {
	if path == "" {
		path, e.assumed = p.last, !p.named && p.last != ""
	}
	p.last, p.named = path, !e.assumed
	e.Number, e.Line, e.Path = len(p.answer.Edits)+1, line+1, path
	p.answer.Edits = append(p.answer.Edits, e)
}

// fence is the opening line of a Markdown fence.
type fence struct {
	mark     byte
	size     int
	indent   int
	language string
	path     string // path that the line has in place of a language, or ""
}

// parseFence parses a line as the opening of a fence, such as "```go". The result is false for other lines.
// A closing line has the same form. The limits of 3 blanks and 3 marks are those of CommonMark.
func parseFence(line string) (fence, bool) {
	rest := strings.TrimLeft(line, " ")
	indent := len(line) - len(rest)
	if indent > 3 || rest == "" || strings.IndexByte("`~", rest[0]) < 0 {
		return fence{}, false
	}
	info := strings.TrimLeft(rest, rest[:1])
	f := fence{mark: rest[0], indent: indent, size: len(rest) - len(info)}
	isInlineCode := f.mark == '`' && strings.Contains(info, "`")
	if f.size < 3 || isInlineCode {
		return fence{}, false
	}
	words := strings.Fields(info)
	if len(words) > 0 {
		f.language = strings.ToLower(words[0])
	}
	if len(words) == 1 && !strings.HasSuffix(f.language, ".net") { // asp.net is a language, no path
		f.path = pathIn(words[0])
	}
	return f, true
}

// closes reports whether a line closes the fence. A line with more indentation belongs to the
// content, as in a diff of Markdown.
func (f fence) closes(line string) bool {
	end, ok := parseFence(line)
	return ok && end.mark == f.mark && end.size >= f.size && end.indent <= f.indent && end.language == ""
}

func (f fence) String() string { return strings.Repeat(string(f.mark), f.size) }

func (p *parser) reportUnclosed(line int, f fence) {
	p.problem(line, "the fence that opens there is not closed, so nothing from there on was taken; close it with a line of %s", f)
}

// readFence parses a fence of a known kind and skips other fences.
func (p *parser) readFence(f fence) {
	open := p.at
	read := p.readerFor(f)
	end := open + 1
	for end < len(p.lines) && !f.closes(p.lines[end]) {
		end++
	}
	p.at = end + 1
	if end == len(p.lines) {
		if read != nil || p.hasRequestFrom(open+1) {
			p.reportUnclosed(open, f)
		}
		return
	}
	nested := slices.ContainsFunc(p.lines[open+1:end], f.opensInside)
	isRequest := read != nil && requestReaders[f.language] != nil
	switch {
	case isRequest && nested && f.language != "console":
		p.problem(open, "the text of the %s fence has fences of its own, and so it is not clear where it ends; put it between longer ones, of %s", f.language, f.longerFence())
	case read != nil:
		read(p, open, end)
	case !f.isText():
		p.reportLateBlock(open, end)
		p.recordSkippedFence(open)
	}
	if nested && p.unclearFence == 0 {
		p.unclearFence, p.requestsBefore = open+1, p.requestCount()
	}
}

// reportLateBlock reports a problem for a block that is below other lines of its fence.
func (p *parser) reportLateBlock(open, end int) {
	for i := open + 1; i < end; i++ {
		if p.beginsBlock(i) {
			p.problem(i, "a SEARCH/REPLACE block begins there, below other lines of its fence; only the path may stand above it. An example stands in a fence of text")
			return
		}
	}
}

// recordSkippedFence records a skipped fence that may be a whole file: the line above it mentions a file.
func (p *parser) recordSkippedFence(open int) {
	above := open - 1
	for above > 0 && strings.TrimSpace(p.lines[above]) == "" {
		above--
	}
	if p.format != Whole || above < 0 {
		return
	}
	for i, word := range strings.Split(p.lines[above], "`") {
		if i%2 == 1 && looksLikePath(word) && !strings.Contains(word, " ") {
			p.skippedFence.line, p.skippedFence.why = open, "the fence that opens there was not taken, since the line above it is no path; write the path alone there if it is a whole file, and ```text if it is an example"
		}
	}
}

// isText reports whether a fence contains text for people, so that a block in it may be an example.
func (f fence) isText() bool {
	return slices.Contains([]string{"text", "txt", "plaintext", "markdown", "md"}, f.language)
}

// hasRequestFrom reports whether a block or a fence with a language begins at a line or below.
func (p *parser) hasRequestFrom(line int) bool {
	for i := line; i < len(p.lines); i++ {
		if f, _ := parseFence(p.lines[i]); f.language != "" || p.beginsBlock(i) {
			return true
		}
	}
	return false
}

// requestReaders maps languages of fences to the methods that read requests other than edits.
var requestReaders = map[string]func(p *parser, open, end int){
	"read":    (*parser).readReads,
	"plan":    (*parser).readPlan,
	"bash":    (*parser).readCommand,
	"sh":      (*parser).readCommand,
	"shell":   (*parser).readCommand,
	"zsh":     (*parser).readCommand,
	"console": (*parser).readConsole,
}

// readerFor returns the method that reads a fence, or nil if the fence is no request.
func (p *parser) readerFor(f fence) func(p *parser, open, end int) {
	readRequest := requestReaders[f.language]
	isRequest := readRequest != nil
	path := f.path
	switch p.format {
	case Udiff:
		if slices.Contains([]string{"diff", "udiff", "patch"}, f.language) {
			return (*parser).readDiff
		}
	case Whole:
		if path == "" && p.at > 0 {
			path = pathIn(p.lines[p.at-1])
		}
		if path == "" {
			if word := p.bareName(); word != "" && !isRequest && !f.isText() {
				return func(p *parser, open, end int) { p.readWhole(f, word, Edit{act: write, isWord: true}, open, end) }
			}
			return readRequest
		}
		isCommand := strings.Contains(path, " ") // in backticks, above its output
		if !isCommand && (!isRequest || isScript(f.language, path)) {
			return func(p *parser, open, end int) { p.readWhole(f, path, Edit{act: write}, open, end) }
		}
	}
	return readRequest
}

// readReads adds the paths in a fence to the files that the model asks to see.
func (p *parser) readReads(open, end int) {
	for _, line := range p.lines[open+1 : end] {
		line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
		if path := cleanPath(strings.Trim(strings.TrimSpace(line), "`")); path != "" {
			p.answer.Reads = append(p.answer.Reads, path)
		}
	}
}

// readCommand adds the content of a fence as a command. It removes prompts if every line has one.
func (p *parser) readCommand(open, end int) {
	lines := p.lines[open+1 : end]
	if script, ok := withoutPrompts(lines); ok {
		lines = script
	}
	if text := strings.Join(lines, "\n"); strings.TrimSpace(text) != "" {
		p.answer.Commands = append(p.answer.Commands, text+"\n")
	}
}

// readConsole reads a fence as a command if every line has a prompt. Otherwise the fence shows
// output.
func (p *parser) readConsole(open, end int) {
	if _, ok := withoutPrompts(p.lines[open+1 : end]); ok {
		p.readCommand(open, end)
	}
}

// withoutPrompts returns the lines without their "$ " prompts. The result is false if a line has none. Blank lines
// need none.
func withoutPrompts(lines []string) ([]string, bool) {
	var script []string
	for _, line := range lines {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok && strings.TrimSpace(line) != "" {
			return nil, false
		}
		script = append(script, command)
	}
	return script, true
}
