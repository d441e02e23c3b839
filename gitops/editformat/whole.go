package editformat

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// readWhole adds the edit e that writes a fence's content to a file.
func (p *parser) readWhole(f fence, name string, e Edit, open, end int) {
	content := p.lines[open+1 : end]
	if slices.ContainsFunc(content, f.opensInside) || p.mayContinueBelow(f, name, end) {
		p.problem(open, "it is not clear where the text of %s ends, since it has fences of its own; put it between longer ones, of %s", name, f.longerFence())
		return
	}
	for _, line := range content {
		e.lines = append(e.lines, v4a.Line{Kind: v4a.Insert, Text: line})
	}
	p.addEdit(open, name, e)
}

// opensInside reports whether a line opens an inner fence whose end could be mistaken for the end
// of this fence.
func (f fence) opensInside(line string) bool {
	inner, ok := parseFence(line)
	return ok && inner.mark == f.mark && inner.size >= f.size && inner.indent <= f.indent
}

func (f fence) longerFence() string { return strings.Repeat(string(f.mark), f.size+1) }

// mayContinueBelow reports whether the closing line, at end, may be part of the file, because an unnamed fence
// follows. It may be if text follows at once, or if such files usually have fences.
func (p *parser) mayContinueBelow(f fence, name string, end int) bool {
	for i := end + 1; i < len(p.lines); i++ {
		next, ok := parseFence(p.lines[i])
		if !ok {
			continue
		}
		isNamed := next.language != "" || pathIn(p.lines[i-1]) != ""
		if next.mark != f.mark || isNamed {
			return false
		}
		usuallyHasFences := path.Ext(name) != "" && isProse(name)
		followsAtOnce := strings.TrimSpace(p.lines[end+1]) != ""
		return usuallyHasFences || followsAtOnce
	}
	return false
}

// leftOut matches a line that represents omitted lines.
var leftOut = lazyregexp.New(`(?i)^\W*(\.\.\.|…)\s*\(?(the )?(rest|other|existing|remaining|unchanged|same|previous)\b`)

// omissionLine returns the first line of a new text that represents omitted lines, such as "... rest unchanged", or
// "". It accepts such a line if the old file has it.
func omissionLine(lines []v4a.Line, was []string) string {
	for _, l := range lines {
		hasDots := strings.Contains(l.Text, "...") || strings.Contains(l.Text, "…")
		if hasDots && leftOut().MatchString(l.Text) && !slices.Contains(was, l.Text) {
			return l.Text
		}
	}
	return ""
}
