package dynamic

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
)

// mostLine is how many bytes the line of an answer may have.
const mostLine = mostItems

// answer is the line that answers a call.
type answer struct {
	CallID  string  `json:"call_id"`
	Items   *[]item `json:"content_items"`
	Success *bool   `json:"success"`
	long    bool    // the line was too long, and nobody knows what it says
}

// result is what the model gets of an answer.
func (a answer) result(name string) tools.Result {
	switch {
	case a.long:
		return tools.Refuse(fmt.Sprintf("%s answered with a line of more than %d bytes, which was thrown away. Ask for less.", name, mostLine))
	case a.Items == nil || a.Success == nil:
		return tools.Refuse(name + " answered without content_items or success, so that nobody knows what came of the call. Look at what it has done.")
	}
	r := resultOf(*a.Items)
	r.Failed = !*a.Success
	if r.Output == "" && r.Failed {
		r.Output = name + " failed, and said nothing of it."
	}
	return r
}

// served is a program that was started once.
type served struct {
	*child
	over   chan struct{} // closed when it has ended
	status sandbox.Status
	err    error

	mu      sync.Mutex
	waiting string      // id of the call that is under way
	answers chan answer // for it; nil where there is none
}

func serve(p Program, log io.Writer) (*served, error) {
	s := &served{over: make(chan struct{})}
	c, err := p.start(func(from io.Reader) { s.read(from, log) }, log)
	if err != nil {
		return nil, err
	}
	s.child = c
	go func() {
		defer close(s.over)
		s.status, s.err = c.end()
	}()
	return s, nil
}

func (s *served) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// how says how the program ended, for a sentence.
func (s *served) how() string {
	<-s.over
	if s.err != nil {
		return "ended: " + s.err.Error()
	}
	return ended(s.status)
}

// stop ends the program and waits for its end.
func (s *served) stop() {
	s.Kill()
	<-s.over
}

// errOver is of a program that ended before it answered.
var errOver = errors.New("the process ended")

// ask makes a call and waits for its answer. Where the error is ctx's, the program is ended;
// else it is errOver.
func (s *served) ask(ctx context.Context, id string, line []byte) (got answer, err error) {
	answers := make(chan answer, 1)
	s.await(id, answers)
	defer s.await("", nil)
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = s.input.Write(line) // of one that ends without reading over tells
	}()
	for wait, rest := answers, written; wait != nil || rest != nil; {
		select {
		case got = <-wait:
			wait = nil
		case <-rest:
			rest = nil
		case <-s.over:
			<-written
			if wait == nil || len(answers) == 0 {
				return got, overUnless(wait == nil)
			}
			return <-answers, nil // it answered and ended at once
		case <-ctx.Done():
			s.stop() // which ends the writer, too
			<-written
			return got, ctx.Err()
		}
	}
	return got, nil
}

func overUnless(answered bool) error {
	if answered {
		return nil
	}
	return errOver
}

// await says which call is under way.
func (s *served) await(id string, answers chan answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.answers = id, answers
}

// read hands answers to the call that waits for them, until the program writes no more. What
// answers no call that is under way goes to the log.
func (s *served) read(from io.Reader, log io.Writer) {
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, long, err := nextLine(lines)
		if text := bytes.TrimSpace(line); long || len(text) > 0 {
			s.take(text, long, log)
		}
		if err != nil {
			return
		}
	}
}

// nextLine reads a line; one that is too long is skipped.
func nextLine(from *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := from.ReadSlice('\n')
		if long = long || len(line)+len(part) > mostLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// longestLogged is how many bytes of a line that answers nothing are logged.
const longestLogged = 1 << 10

func (s *served) take(line []byte, long bool, log io.Writer) {
	a := answer{long: long}
	err := error(nil)
	if !long {
		err = json.Unmarshal(line, &a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers != nil && err == nil && (long || a.CallID == s.waiting) {
		s.answers <- a
		s.answers = nil
		return
	}
	fmt.Fprintf(log, "agent-ci: a line that answers no call under way: %s\n", line[:min(len(line), longestLogged)])
}
