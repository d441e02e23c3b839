package here

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Progress tells a person of all targets: a line for each that starts or ends and, on a terminal,
// those that run below the lines, on one screen.
type Progress struct {
	to      io.Writer
	width   int // of the terminal; 0 where there is none
	running []string
	ended   int
	shown   int // lines of the block that stands below
}

// mostShown is how many running targets a screen has.
const mostShown = 16

// NewProgress tells a person. width is that of the terminal, 0 where there is none.
func NewProgress(to io.Writer, width int) *Progress { return &Progress{to: to, width: width} }

// Tell tells of a step.
func (p *Progress) Tell(s Step) {
	name := progress.Printable(s.Target.Key)
	line := ""
	switch {
	case s.Report == nil:
		line = map[bool]string{true: "goes on", false: "starts"}[s.Taken]
		p.running = append(p.running, name)
	case s.Left:
		line = "is left as it is, and goes on with the next start"
	default:
		line = s.Report.Outcome + "/" + s.Report.Reason
		if s.Report.Message != "" {
			line += ": " + s.Report.Message
		}
	}
	if s.Report != nil && !s.Passed {
		p.running = slices.DeleteFunc(p.running, func(each string) bool { return each == name })
	}
	if s.Report != nil {
		p.ended++
	}
	p.clear()
	if p.width == 0 || s.Report != nil {
		fmt.Fprintln(p.to, p.cut(name+" "+progress.Printable(line)))
	}
	p.draw()
}

// End leaves the lines alone.
func (p *Progress) End() { p.clear() }

func (p *Progress) clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.to, "\x1b[%dA\x1b[J", p.shown)
		p.shown = 0
	}
}

func (p *Progress) draw() {
	if p.width == 0 {
		return
	}
	lines := []string{fmt.Sprintf("%d ended, %d running", p.ended, len(p.running))}
	for _, name := range p.running[:min(len(p.running), mostShown)] {
		lines = append(lines, "  "+name)
	}
	if more := len(p.running) - mostShown; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	for i, line := range lines {
		lines[i] = p.cut(line)
	}
	fmt.Fprintln(p.to, strings.Join(lines, "\n"))
	p.shown = len(lines)
}

// mostLine is how long a line is where no terminal bounds it.
const mostLine = 500

func (p *Progress) cut(line string) string {
	if p.width == 0 {
		return markdown.Cut(line, mostLine)
	}
	return markdown.Cut(line, p.width-1)
}
