package clip

import (
	"bytes"
	"strings"
)

// Head is a writer that keeps the first Limit bytes and drops the rest.
type Head struct {
	Limit     int
	buffer    []byte
	truncated bool
}

func (h *Head) Write(p []byte) (int, error) {
	kept := min(len(p), h.Limit-len(h.buffer))
	h.buffer = append(h.buffer, p[:kept]...)
	h.truncated = h.truncated || kept < len(p)
	return len(p), nil
}

func (h *Head) String() string { return validUTF8(bytes.TrimSpace(h.buffer)) }

// Bytes returns the kept bytes unchanged.
func (h *Head) Bytes() []byte { return h.buffer }

// Truncated reports whether the text was longer than the limit.
func (h *Head) Truncated() bool { return h.truncated }

// Lines returns the kept text without a last line that the limit cut.
func (h *Head) Lines() string {
	if h.truncated {
		return validUTF8(h.buffer[:bytes.LastIndexByte(h.buffer, '\n')+1])
	}
	return validUTF8(h.buffer)
}

// Line returns the first line of the text.
func (h *Head) Line() string {
	line, _, _ := strings.Cut(h.String(), "\n")
	return line
}

// Tail is a writer that keeps the last Limit bytes.
type Tail struct {
	Limit  int
	buffer []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.buffer = append(t.buffer, p[max(0, len(p)-t.Limit):]...)
	t.buffer = t.buffer[max(0, len(t.buffer)-t.Limit):]
	return len(p), nil
}

func (t *Tail) String() string { return validUTF8(bytes.TrimSpace(t.buffer)) }

// validUTF8 returns kept as valid UTF-8.
func validUTF8(kept []byte) string { return strings.ToValidUTF8(string(kept), "\uFFFD") }
