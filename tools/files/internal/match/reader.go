package match

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/gitops/charset"
)

const (
	// window is how much of a file is held at once. Of a line that is longer, a
	// match is found when it lies in one window.
	window = 1 << 20
	// firstWindow is what most files fit into.
	firstWindow = 64 << 10
)

// Reader searches files one after the other and uses one buffer for all. The
// zero value is ready. It is used by one goroutine at a time.
type Reader struct {
	// Encoding is that of the last file, if it was not searched since it is text in UTF-16 or UTF-32.
	Encoding string
	buffer   []byte
}

// Match says whether a line of the file matches. Binary files don't. It reads
// no further than the first match, and holds at most 1 MiB.
func (r *Reader) Match(ctx context.Context, p *Pattern, file io.Reader) (bool, error) {
	held := 0
	r.Encoding = ""
	for first := true; ; first = false {
		n, err := r.fill(file, held)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return false, err
		}
		text := r.buffer[:n]
		if head := text[:min(n, charset.Head)]; first {
			if r.Encoding = charset.Of(head); r.Encoding != "" || bytes.IndexByte(head, 0) >= 0 {
				return false, nil
			}
		}
		if ended {
			return p.MatchLines(text), nil
		}
		lines := cmp.Or(bytes.LastIndexByte(text, '\n')+1, n)
		if p.MatchLines(text[:lines]) {
			return true, nil
		}
		held = copy(text, text[lines:])
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
}

// fill reads until the buffer holds a window or the file has ended, which is
// io.EOF. The buffer grows when a file needs it.
func (r *Reader) fill(file io.Reader, held int) (int, error) {
	if r.buffer == nil {
		r.buffer = make([]byte, firstWindow)
	}
	for {
		if held == len(r.buffer) {
			if len(r.buffer) >= window {
				return held, nil
			}
			grown := make([]byte, window)
			copy(grown, r.buffer)
			r.buffer = grown
		}
		n, err := file.Read(r.buffer[held:])
		held += n
		if err != nil {
			return held, err
		}
	}
}
