package repl

import (
	"bytes"
	"io"
	"sync"
)

// maxBetweenCalls is how many bytes of output are kept between two calls.
const maxBetweenCalls = 64 << 10

// printRouter directs the code's output to the current call.
type printRouter struct {
	mu           sync.Mutex
	to           io.Writer // output of the current call; nil between calls
	mark         []byte    // text that ends the output of the call
	markSeen     chan struct{}
	possibleMark []byte // output that may be the beginning of the mark
	betweenCalls []byte // output between two calls
	lostSome     bool   // part of late was dropped
}

// begin directs output to a call until mark arrives, and then closes the channel.
func (p *printRouter) begin(to io.Writer, mark string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.betweenCalls) > 0 {
		_, _ = to.Write(p.betweenCalls) // Capture.Write never fails
		if p.lostSome {
			_, _ = io.WriteString(to, "\n[more was printed before this call, and is lost]\n")
		}
	}
	p.to, p.mark, p.markSeen, p.betweenCalls, p.lostSome = to, []byte(mark), make(chan struct{}), nil, false
	return p.markSeen
}

// end stops directing output to the call.
func (p *printRouter) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(p.possibleMark)
	p.to, p.mark, p.possibleMark = nil, nil, nil
}

// addRemark inserts a remark of agent-ci into the output.
func (p *printRouter) addRemark(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write([]byte(words))
}

func (p *printRouter) copy(from io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.route(buffer[:n])
		if err != nil {
			return nil
		}
	}
}

// route passes text on to the call until the mark, and keeps what follows for the next call. Text that may begin the
// mark is held back.
func (p *printRouter) route(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mark) == 0 {
		p.write(text)
		return
	}
	text = append(p.possibleMark, text...)
	if at := bytes.Index(text, p.mark); at >= 0 {
		p.write(text[:at])
		rest := text[at+len(p.mark):]
		close(p.markSeen)
		p.to, p.mark, p.possibleMark = nil, nil, nil
		p.write(rest)
		return
	}
	written := max(len(text)-len(p.mark)+1, 0)
	p.write(text[:written])
	p.possibleMark = bytes.Clone(text[written:])
}

// write gives text to the call, or keeps it for the next one.
func (p *printRouter) write(text []byte) {
	if p.to != nil {
		_, _ = p.to.Write(text)
		return
	}
	room := min(maxBetweenCalls-len(p.betweenCalls), len(text))
	p.betweenCalls = append(p.betweenCalls, text[:room]...)
	p.lostSome = p.lostSome || room < len(text)
}
