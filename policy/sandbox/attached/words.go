package attached

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// Ending says how a program ended, for the end of a sentence.
func Ending(status sandbox.Status, err error) string {
	switch {
	case err != nil:
		return "ended: " + err.Error()
	case status.Signal != "":
		return "was ended by " + status.Signal
	}
	return fmt.Sprintf("ended with exit status %d", status.ExitCode)
}

// Head keeps the first Most bytes written to it.
type Head struct {
	Most int
	kept []byte
}

func (h *Head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.Most-len(h.kept))]...)
	return len(p), nil
}

func (h *Head) String() string { return text(h.kept) }

// Line returns the first line.
func (h *Head) Line() string {
	line, _, _ := strings.Cut(h.String(), "\n")
	return line
}

// Tail keeps the last Most bytes written to it.
type Tail struct {
	Most int
	kept []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.Most):]...)
	t.kept = t.kept[max(0, len(t.kept)-t.Most):]
	return len(p), nil
}

func (t *Tail) String() string { return text(t.kept) }

func text(kept []byte) string { return strings.ToValidUTF8(string(bytes.TrimSpace(kept)), "\uFFFD") }
