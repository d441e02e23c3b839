package repl

import (
	"bytes"
	"io"
	"sync"
)

// maxLate is how many bytes of output are kept between two calls.
const maxLate = 64 << 10

// prints directs the code's output to the current call.
type prints struct {
	mu     sync.Mutex
	to     io.Writer // output of the current call; nil between calls
	mark   []byte    // text that ends the output of the call
	marked chan struct{}
	held   []byte // output that may be the beginning of the mark
	late   []byte // output between two calls
	lost   bool   // part of late was dropped
}

// begin directs output to a call until mark arrives, and then closes the channel.
func (p *prints) begin(to io.Writer, mark string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.late) > 0 {
		_, _ = to.Write(p.late) // Capture.Write never fails
		if p.lost {
			_, _ = io.WriteString(to, "\n[more was printed before this call, and is lost]\n")
		}
	}
	p.to, p.mark, p.marked, p.late, p.lost = to, []byte(mark), make(chan struct{}), nil, false
	return p.marked
}

// end stops directing output to the call.
func (p *prints) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(p.held)
	p.to, p.mark, p.held = nil, nil, nil
}

// say inserts a remark of agent-ci into the output.
func (p *prints) say(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write([]byte(words))
}

func (p *prints) copy(from io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.take(buffer[:n])
		if err != nil {
			return nil
		}
	}
}

// take passes text on to the call until the mark, and keeps what follows for the next call. Text that may begin the
// mark is held back.
func (p *prints) take(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mark) == 0 {
		p.write(text)
		return
	}
	text = append(p.held, text...)
	if at := bytes.Index(text, p.mark); at >= 0 {
		p.write(text[:at])
		behind := text[at+len(p.mark):]
		close(p.marked)
		p.to, p.mark, p.held = nil, nil, nil
		p.write(behind)
		return
	}
	sure := max(len(text)-len(p.mark)+1, 0)
	p.write(text[:sure])
	p.held = bytes.Clone(text[sure:])
}

// write gives text to the call, or keeps it for the next one.
func (p *prints) write(text []byte) {
	if p.to != nil {
		_, _ = p.to.Write(text)
		return
	}
	room := min(maxLate-len(p.late), len(text))
	p.late = append(p.late, text[:room]...)
	p.lost = p.lost || room < len(text)
}
