package command

import (
	"io"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// window is the terminal of a command that asks for one, as the reference
// implementation has it.
var window = sandbox.Window{Rows: 24, Columns: 80}

// plainLines takes away the carriage returns that a terminal puts before each
// newline. Elsewhere they stay, as progress bars live on them, but several in a
// row become one.
type plainLines struct {
	to   io.Writer
	held bool // a carriage return of which it is not known yet what follows
}

func (l *plainLines) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p)+1)
	for _, c := range p {
		if c == '\r' {
			l.held = true
			continue
		}
		if l.held && c != '\n' {
			text = append(text, '\r')
		}
		text, l.held = append(text, c), false
	}
	if _, err := l.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
