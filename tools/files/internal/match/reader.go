package match

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/gitops/charset"
)

// window is the size of the part of a file held in memory, in bytes. In a longer line, only matches inside one window
// are found.
const window = 1 << 20

// Reader searches files one after the other with one buffer. It is not safe for concurrent use. The zero value is ready
// for use.
type Reader struct {
	// Encoding is the last file's encoding if it is unsupported: UTF-16 or UTF-32.
	Encoding string
	buffer   []byte
}

// Match reports whether a line of a file matches. It returns false for binary files and for unsupported encodings, which
// it stores in Encoding. It does not read further than the first match.
func (r *Reader) Match(ctx context.Context, p *Pattern, file io.Reader) (bool, error) {
	held := 0 // bytes of an incomplete line, kept at the start of the buffer
	r.Encoding = ""
	for first := true; ; first = false {
		length, err := r.fill(file, held)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return false, err
		}
		text := r.buffer[:length]
		if first {
			head := text[:min(length, charset.Head)]
			r.Encoding = charset.Of(head)
			isBinary := bytes.IndexByte(head, 0) >= 0
			if r.Encoding != "" || isBinary {
				return false, nil
			}
		}
		if ended {
			return p.MatchLines(text), nil
		}
		endOfLines := cmp.Or(bytes.LastIndexByte(text, '\n')+1, length) // a line longer than a window is divided
		if p.MatchLines(text[:endOfLines]) {
			return true, nil
		}
		held = copy(text, text[endOfLines:])
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
}

// fill reads until the buffer contains a window or the end of the file, for which it returns io.EOF. held is the number of
// bytes that the buffer contains already. It returns the number of bytes in the buffer, with those held.
func (r *Reader) fill(file io.Reader, held int) (length int, err error) {
	if r.buffer == nil {
		r.buffer = make([]byte, window)
	}
	for held < len(r.buffer) {
		n, err := file.Read(r.buffer[held:])
		held += n
		if err != nil {
			return held, err
		}
	}
	return held, nil
}
