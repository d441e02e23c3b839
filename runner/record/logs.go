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

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/secrets"
)

// How many bytes of a command's output are kept. Longer output loses its middle, because the end
// shows the result.
const (
	CommandLogBytes = 256 << 20
	ServiceLogBytes = 16 << 20 // smaller, because a service is started many times
	maxLogEnd       = 1 << 20  // bytes kept of the end
)

// LogWriter writes the beginning and the end of an output, redacted.
type LogWriter struct {
	mu           sync.Mutex
	file         io.Writer
	redacted     *secrets.Stream
	headRoom     int    // bytes that still belong to the beginning
	maxTail      int    // maximum bytes of the end
	tail         []byte // the last bytes after the beginning
	droppedBytes int    // bytes dropped between beginning and end
}

// NewLogWriter returns a writer that writes up to limit bytes to file: the beginning and the end of
// the output.
func NewLogWriter(file io.Writer, limit int, redact func(string) string) *LogWriter {
	w := &LogWriter{file: file, headRoom: limit - maxLogEnd, maxTail: maxLogEnd}
	w.redacted = secrets.NewStream(redact, w.keep)
	return w
}

func (w *LogWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.redacted.Write(p)
}

// Flush writes the buffered tail, and before it how many bytes were dropped. Call it last.
func (w *LogWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.redacted.Flush()
	w.drop(len(w.tail) - w.maxTail)
	end := string(w.tail)
	if w.droppedBytes > 0 {
		end = dropPartialLine(end)
		w.droppedBytes += len(w.tail) - len(end)
		fmt.Fprintf(w.file, "\nagent-ci: the output is truncated; %d bytes before its end were not kept\n", w.droppedBytes)
	}
	_, _ = io.WriteString(w.file, end)
	w.tail, w.droppedBytes = nil, 0
}

// dropPartialLine removes the first line of a text that was cut, because it is incomplete. If there is no
// other line, it only removes the rest of an incomplete character.
func dropPartialLine(text string) string {
	if _, rest, _ := strings.Cut(text, "\n"); strings.TrimSpace(rest) != "" {
		return rest
	}
	for n := 1; n < utf8.UTFMax && text != "" && !utf8.RuneStart(text[0]); n++ {
		text = text[1:]
	}
	return text
}

// keep writes text to the file while the beginning has room, and buffers the rest as the tail.
func (w *LogWriter) keep(text string) {
	n := min(len(text), w.headRoom)
	w.headRoom -= n
	_, _ = io.WriteString(w.file, text[:n]) // an unwritable log does not affect the command
	w.tail = append(w.tail, text[n:]...)
	if len(w.tail) > 2*w.maxTail { // not at each write, because dropping copies the rest
		w.drop(len(w.tail) - w.maxTail)
	}
}

// drop removes bytes from the beginning of the buffered tail.
func (w *LogWriter) drop(bytes int) {
	if bytes > 0 {
		w.droppedBytes += bytes
		w.tail = append(w.tail[:0], w.tail[bytes:]...)
	}
}

// Tail returns up to bytes bytes of a log's end, in whole lines.
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
		text = "[…]\n" + dropPartialLine(text)
	}
	return strings.ToValidUTF8(text, "�"), nil
}

// HeadAndTail returns a log. Of a long log it returns about head bytes of the beginning and tail bytes of
// the end, in whole lines, and the size of the gap. Compilers print the first error at the beginning,
// test results are at the end.
func (d *Directory) HeadAndTail(name string, head, tail int64) (string, error) {
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
	headBytes := make([]byte, head)
	if _, err := f.ReadAt(headBytes, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line := bytes.LastIndexByte(headBytes, '\n') + 1; line > 0 {
		headBytes = headBytes[:line]
	}
	tailText, err := d.Tail(name, tail)
	if err != nil {
		return "", err
	}
	tailText = strings.TrimPrefix(tailText, "[…]\n")
	omitted := info.Size() - int64(len(headBytes)+len(tailText))
	return fmt.Sprintf("%s\n[… about %d bytes left out …]\n%s", strings.ToValidUTF8(strings.TrimSuffix(string(headBytes), "\n"), "�"), omitted, tailText), nil
}

// LogName returns the file name for the log of a command. name may contain any characters.
func LogName(kind string, number int, name string) string {
	const maxNameBytes = 40
	clean := clip.Start(clip.Name(name, "-_.", '-'), maxNameBytes)
	return filepath.Join(OutputsFolder, fmt.Sprintf("%s-%d-%s.log", kind, number, clean))
}
