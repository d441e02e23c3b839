package command

import (
	"io"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// window is the size of terminals, as in the reference implementation.
var window = sandbox.Window{Rows: 24, Columns: 80}

// plainLines is a writer that removes carriage returns before newlines from a terminal's output. It keeps other carriage
// returns, which progress bars use, but reduces several in a row to one.
type plainLines struct {
	to         io.Writer
	heldReturn bool // the last byte was a carriage return, not written yet
}

// Write writes p without the removed carriage returns.
func (l *plainLines) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p)+1)
	for _, c := range p {
		if c == '\r' {
			l.heldReturn = true
			continue
		}
		if l.heldReturn && c != '\n' {
			text = append(text, '\r')
		}
		text, l.heldReturn = append(text, c), false
	}
	if _, err := l.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
