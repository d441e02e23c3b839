package clip

import (
	"bytes"
	"strings"
)

// Head keeps the first Most bytes written to it.
type Head struct {
	Most int
	kept []byte
	cut  bool
}

func (h *Head) Write(p []byte) (int, error) {
	fits := min(len(p), h.Most-len(h.kept))
	h.kept = append(h.kept, p[:fits]...)
	h.cut = h.cut || fits < len(p)
	return len(p), nil
}

func (h *Head) String() string { return text(bytes.TrimSpace(h.kept)) }

// Bytes returns what was kept, as it was written.
func (h *Head) Bytes() []byte { return h.kept }

// Cut reports whether more was written than was kept.
func (h *Head) Cut() bool { return h.cut }

// Lines returns the whole lines that were kept.
func (h *Head) Lines() string {
	if h.cut {
		return text(h.kept[:bytes.LastIndexByte(h.kept, '\n')+1])
	}
	return text(h.kept)
}

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

func (t *Tail) String() string { return text(bytes.TrimSpace(t.kept)) }

func text(kept []byte) string { return strings.ToValidUTF8(string(kept), "\uFFFD") }
