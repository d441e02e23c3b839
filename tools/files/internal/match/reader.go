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
	// window is the part of a file in memory. In a longer line, a match must be inside one window.
	window = 1 << 20
	// firstWindow suffices for most files.
	firstWindow = 64 << 10
)

// Reader searches files one after the other with one buffer. The zero value is ready, for one
// goroutine at a time.
type Reader struct {
	// Encoding is the last file's encoding if it is unsupported: UTF-16 or UTF-32.
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

// fill reads until the buffer holds a window, or the end as io.EOF. It grows the buffer if needed.
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
