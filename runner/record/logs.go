package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/secrets"
)

// The kept bytes of a command's output. Longer output is cut before its end, which shows the
// result.
const (
	CommandLog = 256 << 20
	ServiceLog = 16 << 20 // of a service, which is started again and again
	logEnd     = 1 << 20  // of each
)

// LogWriter keeps the beginning and the end of an output, without secrets.
type LogWriter struct {
	mu       sync.Mutex
	file     io.Writer
	clean    secrets.Stream
	headLeft int    // bytes of the beginning that may still come
	maxTail  int    // bytes of the end
	end      []byte // what came after the beginning, its last bytes
	dropped  int    // bytes between the two
}

// NewLogWriter returns a writer that keeps up to limit bytes in file: the beginning and the end of the
// output.
func NewLogWriter(file io.Writer, limit int, redact func(string) string) *LogWriter {
	w := &LogWriter{file: file, headLeft: limit - logEnd, maxTail: logEnd}
	w.clean = secrets.Stream{Redact: redact, Put: w.write}
	return w
}

func (w *LogWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clean.Write(p)
}

// Flush writes the rest and notes a cut. It must be the last call.
func (w *LogWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clean.Flush()
	w.drop(len(w.end) - w.maxTail)
	end := string(w.end)
	if w.dropped > 0 {
		end = afterCut(end)
		w.dropped += len(w.end) - len(end)
		fmt.Fprintf(w.file, "\nagent-ci: the output is truncated; %d bytes before its end were not kept\n", w.dropped)
	}
	_, _ = io.WriteString(w.file, end)
	w.end, w.dropped = nil, 0
}

// afterCut drops an incomplete first line, unless it is the only one.
func afterCut(text string) string {
	if _, rest, _ := strings.Cut(text, "\n"); strings.TrimSpace(rest) != "" {
		return rest
	}
	for n := 1; n < utf8.UTFMax && text != "" && !utf8.RuneStart(text[0]); n++ {
		text = text[1:]
	}
	return text
}

func (w *LogWriter) write(text string) {
	n := min(len(text), w.headLeft)
	w.headLeft -= n
	_, _ = io.WriteString(w.file, text[:n]) // a log that cannot be written doesn't change what the command did
	if w.end = append(w.end, text[n:]...); len(w.end) > 2*w.maxTail {
		w.drop(len(w.end) - w.maxTail)
	}
}

func (w *LogWriter) drop(bytes int) {
	if bytes > 0 {
		w.dropped += bytes
		w.end = append(w.end[:0], w.end[bytes:]...)
	}
}

// Tail returns the end of a log, for the model and for people.
func (d *Directory) Tail(name string, bytes int64) (string, error) {
	f, err := d.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	offset := max(0, info.Size()-bytes)
	raw := make([]byte, info.Size()-offset)
	if _, err := f.ReadAt(raw, offset); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	text := string(raw)
	if offset > 0 && strings.Contains(text, "\n") {
		text = "[…]\n" + afterCut(text)
	}
	return strings.ToValidUTF8(text, "�"), nil
}

// Ends returns a log, or its head and tail with the size of the gap. A compiler's first error is in
// the head, test results are in the tail.
func (d *Directory) Ends(name string, head, tail int64) (string, error) {
	f, err := d.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() <= head+tail {
		return d.Tail(name, head+tail)
	}
	raw := make([]byte, head)
	if _, err := f.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line := bytes.LastIndexByte(raw, '\n') + 1; line > 0 {
		raw = raw[:line]
	}
	last, err := d.Tail(name, tail)
	if err != nil {
		return "", err
	}
	last = strings.TrimPrefix(last, "[…]\n")
	left := info.Size() - int64(len(raw)+len(last))
	return fmt.Sprintf("%s\n[… about %d bytes left out …]\n%s", strings.ToValidUTF8(strings.TrimSuffix(string(raw), "\n"), "�"), left, last), nil
}

// LogName returns the file name for the log of a command named by people.
func LogName(kind string, number int, name string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '-'
	}, name)
	if len(clean) > 40 {
		clean = clean[:40]
	}
	return filepath.Join(OutputsFolder, fmt.Sprintf("%s-%d-%s.log", kind, number, clean))
}
