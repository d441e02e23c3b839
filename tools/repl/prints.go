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
	lostSome     bool   // part of betweenCalls was dropped
}

// begin directs output to the writer of a call until mark arrives in it, and then closes the returned channel.
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

// end stops directing output to the call, even if its mark has not arrived.
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

// copy routes all output of the kernel until its end.
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

// route writes text to the call up to the mark, and keeps the text after it for the next call. It holds back text that
// may be the beginning of the mark.
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

// write writes text to the call, or keeps it for the next call.
func (p *printRouter) write(text []byte) {
	if p.to != nil {
		_, _ = p.to.Write(text)
		return
	}
	room := min(maxBetweenCalls-len(p.betweenCalls), len(text))
	p.betweenCalls = append(p.betweenCalls, text[:room]...)
	p.lostSome = p.lostSome || room < len(text)
}
