package proxy

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/policy/credential"
)

// frames forwards a server's WebSocket frames (RFC 6455, 5.2) without values of credentials. It
// searches a message across its frames. The end of a message is never held back.
type frames struct {
	guard *credential.Guard
	to    io.Writer

	raw   []byte // received and not forwarded
	next  int    // the offset in raw of the unread part
	left  uint64 // unread bytes of the current frame
	final bool   // the current frame ends its message

	text    []byte // the held back part of the message
	offsets []int  // the offset in raw of each byte of text
}

var errNoFrame = errors.New("a frame of a WebSocket that is compressed or masked, or a control frame that is too long")

// Write takes the next bytes from the server, and forwards all bytes before the first held back one.
func (f *frames) Write(part []byte) (int, error) {
	f.raw = append(f.raw, part...)
	for f.next < len(f.raw) {
		if f.left == 0 {
			if read, err := f.head(); err != nil {
				return 0, err
			} else if !read {
				break
			}
		}
		f.take()
	}
	f.replace(false)
	ready := f.next
	if len(f.offsets) > 0 {
		ready = f.offsets[0]
	}
	if ready > 0 {
		if _, err := f.to.Write(f.raw[:ready]); err != nil {
			return 0, err
		}
	}
	f.raw = append(f.raw[:0], f.raw[ready:]...)
	f.next -= ready
	for i := range f.offsets {
		f.offsets[i] -= ready
	}
	return len(part), nil
}

// head reads the header of a frame. It reads a control frame completely, since such a frame may
// interrupt a message. It reports false if bytes are missing.
func (f *frames) head() (read bool, err error) {
	const (
		final, reserved, control, masked = 0x80, 0x70, 0x08, 0x80
		longestControl                   = 125
	)
	rest := f.raw[f.next:]
	if len(rest) < 2 {
		return false, nil
	}
	length, head := uint64(rest[1]&^masked), 2
	switch length {
	case 126: // the length is in 2 further bytes
		head = 4
	case 127: // the length is in 8 further bytes
		head = 10
	}
	switch isControl := rest[0]&control != 0; {
	case rest[0]&reserved != 0 || rest[1]&masked != 0 || isControl && length > longestControl:
		return false, errNoFrame
	case len(rest) < head || isControl && len(rest) < head+int(length):
		return false, nil
	case isControl:
		f.guard.Replace(rest[head:head+int(length)], true)
		f.next += head + int(length)
		return true, nil
	case head == 4:
		length = uint64(binary.BigEndian.Uint16(rest[2:]))
	case head == 10:
		length = binary.BigEndian.Uint64(rest[2:])
	}
	f.final, f.left = rest[0]&final != 0, length
	f.next += head
	if f.left == 0 && f.final {
		f.replace(true)
	}
	return true, nil
}

// take reads the available text of a frame.
func (f *frames) take() {
	n := int(min(f.left, uint64(len(f.raw)-f.next)))
	for i := range n {
		f.offsets = append(f.offsets, f.next+i)
	}
	f.text = append(f.text, f.raw[f.next:f.next+n]...)
	f.next += n
	if f.left -= uint64(n); f.left == 0 && n > 0 && f.final {
		f.replace(true)
	}
}

// replace replaces values in the held back text and releases its finished part. whole means that the
// message ends there.
func (f *frames) replace(whole bool) {
	ready := f.guard.Replace(f.text, whole)
	for i, c := range f.text[:ready] {
		f.raw[f.offsets[i]] = c
	}
	f.text = append(f.text[:0], f.text[ready:]...)
	f.offsets = append(f.offsets[:0], f.offsets[ready:]...)
}
