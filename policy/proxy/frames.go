package proxy

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/policy/credential"
)

// frameForwarder forwards a server's WebSocket frames (RFC 6455, 5.2) without values of credentials. It
// searches a message across its frames. It never holds back the end of a message.
type frameForwarder struct {
	guard *credential.Guard
	to    io.Writer

	raw            []byte // received and not forwarded
	unread         int    // the offset in raw of the unread part
	frameRemaining uint64 // unread bytes of the current frame
	isFinal        bool   // the current frame ends its message

	held        []byte // the held back part of the message
	heldOffsets []int  // the offset in raw of each byte of held
}

var errUnsupportedFrame = errors.New("a frame of a WebSocket that is compressed or masked, or a control frame that is too long")

// Write takes the next bytes from the server. It replaces values in the received text of frames, and
// forwards everything before the first byte that is held back.
func (f *frameForwarder) Write(part []byte) (int, error) {
	f.raw = append(f.raw, part...)
	for f.unread < len(f.raw) {
		if f.frameRemaining == 0 {
			complete, err := f.readHeader()
			if err != nil {
				return 0, err
			}
			if !complete {
				break
			}
		}
		f.readText()
	}
	f.replaceValues()
	ready := f.unread
	if len(f.heldOffsets) > 0 {
		ready = f.heldOffsets[0] // the first byte that is held back
	}
	if ready > 0 {
		if _, err := f.to.Write(f.raw[:ready]); err != nil {
			return 0, err
		}
	}
	f.raw = append(f.raw[:0], f.raw[ready:]...)
	f.unread -= ready
	for i := range f.heldOffsets {
		f.heldOffsets[i] -= ready
	}
	return len(part), nil
}

// readHeader reads the header of a frame (RFC 6455, 5.2). It reads a control frame completely, since such a frame may
// interrupt a message. It reports false if bytes are missing.
func (f *frameForwarder) readHeader() (complete bool, err error) {
	const (
		final, reserved, control, masked = 0x80, 0x70, 0x08, 0x80
		maxControlLength                 = 125
	)
	received := f.raw[f.unread:]
	if len(received) < 2 {
		return false, nil
	}
	length, isControl := uint64(received[1]&^masked), received[0]&control != 0
	isInvalidControl := isControl && length > maxControlLength
	if received[0]&reserved != 0 || received[1]&masked != 0 || isInvalidControl {
		return false, errUnsupportedFrame
	}
	if isControl {
		end := 2 + int(length)
		if len(received) < end {
			return false, nil
		}
		f.guard.ReplaceValues(received[2:end], true)
		f.unread += end
		return true, nil
	}
	headerSize := 2
	switch length {
	case 126: // the length is in 2 further bytes
		headerSize = 4
	case 127: // the length is in 8 further bytes
		headerSize = 10
	}
	if len(received) < headerSize {
		return false, nil
	}
	switch headerSize {
	case 4:
		length = uint64(binary.BigEndian.Uint16(received[2:]))
	case 10:
		length = binary.BigEndian.Uint64(received[2:])
	}
	f.isFinal, f.frameRemaining = received[0]&final != 0, length
	f.unread += headerSize
	return true, nil
}

// readText moves the available text of a frame to held. At the end of the message it also replaces values.
func (f *frameForwarder) readText() {
	n := int(min(f.frameRemaining, uint64(len(f.raw)-f.unread)))
	for i := range n {
		f.heldOffsets = append(f.heldOffsets, f.unread+i)
	}
	f.held = append(f.held, f.raw[f.unread:f.unread+n]...)
	f.unread += n
	f.frameRemaining -= uint64(n)
	if f.isAtEnd() {
		f.replaceValues()
	}
}

// isAtEnd reports whether the held back text ends with its message.
func (f *frameForwarder) isAtEnd() bool { return f.isFinal && f.frameRemaining == 0 }

// replaceValues replaces values in the held back text and releases its finished part.
func (f *frameForwarder) replaceValues() {
	ready := f.guard.ReplaceValues(f.held, f.isAtEnd())
	for i, c := range f.held[:ready] {
		f.raw[f.heldOffsets[i]] = c
	}
	f.held = append(f.held[:0], f.held[ready:]...)
	f.heldOffsets = append(f.heldOffsets[:0], f.heldOffsets[ready:]...)
}
