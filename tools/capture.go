package tools

import (
	"bytes"
	"sync"
)

// memoryLimit is the maximum memory of a Capture, in bytes. It holds a short output, or both ends of a long one.
const memoryLimit = 1 << 20

// Capture collects a command's output. It holds up to 1 MiB in memory, and writes longer output to a file. It is safe
// for concurrent use.
type Capture struct {
	outputs *Outputs
	callID  string

	mu        sync.Mutex
	buffer    []byte // the whole output; with a spool, its head followed by a ring buffer of its tail
	ringStart int    // index of the oldest byte in the ring
	bytes     int64
	lines     int
	spool     *spool
}

// Printed is a part of a command's output, for a Result.
type Printed struct {
	head, tail []byte // tail is empty when head is all of it
	bytes      int64
	lines      int
	spool      *spool
}

// Capture returns a Capture whose files are named after the call.
func (o *Outputs) Capture(callID string) *Capture {
	return &Capture{outputs: o, callID: callID}
}

// Write adds p to the output. It never fails: if the file cannot be written, the output says so.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := len(p)
	c.bytes += int64(written)
	c.lines += bytes.Count(p, []byte{'\n'})
	if c.spool == nil {
		room := min(memoryLimit-len(c.buffer), len(p))
		c.buffer = append(c.buffer, p[:room]...)
		p = p[room:]
		if len(p) == 0 {
			return written, nil
		}
		c.spool = c.outputs.openSpool(c.callID)
		c.spool.write(c.buffer)
	}
	c.spool.write(p)
	c.writeRing(p)
	return written, nil
}

// writeRing overwrites the oldest bytes of the ring with p.
func (c *Capture) writeRing(p []byte) {
	ring := c.buffer[memoryLimit/2:] // the first half keeps the beginning of the output
	if len(p) >= len(ring) {
		copy(ring, p[len(p)-len(ring):])
		c.ringStart = 0
		return
	}
	n := copy(ring[c.ringStart:], p)
	copy(ring, p[n:])
	c.ringStart = (c.ringStart + len(p)) % len(ring)
}

// Take returns the output since the last Take, and clears it. The caller must put the Printed into a Result or close it.
func (c *Capture) Take() *Printed {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := &Printed{head: c.buffer, bytes: c.bytes, lines: c.lines, spool: c.spool}
	if c.spool != nil {
		ring := c.buffer[memoryLimit/2:]
		taken.head = c.buffer[:memoryLimit/2]
		taken.tail = append(append(make([]byte, 0, len(ring)), ring[c.ringStart:]...), ring[:c.ringStart]...)
	}
	c.buffer, c.ringStart, c.bytes, c.lines, c.spool = nil, 0, 0, 0, nil
	return taken
}

// Bytes returns the length of the output, in bytes.
func (p *Printed) Bytes() int64 { return p.bytes }

// Close closes the file of an output that no Result uses.
func (p *Printed) Close() error {
	if p.spool == nil {
		return nil
	}
	return p.spool.close()
}
