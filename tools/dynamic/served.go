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
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
)

// mostLine is how many bytes the line of an answer may have.
const mostLine = mostItems

// answer is a line of a program: what answers a call, or says that calls can come. What stands
// under its keys is read once it is known whose it is.
type answer struct {
	CallID  any             `json:"call_id"`
	Items   json.RawMessage `json:"content_items"`
	Success json.RawMessage `json:"success"`
	Ready   any             `json:"ready"`
	long    bool            // the line was too long, and nobody knows what it says
}

// result is what the model gets of an answer.
func (a answer) result(ctx context.Context, name string) tools.Result {
	if a.long {
		return tools.Refuse(fmt.Sprintf("%s answered with a line of more than %d bytes, which was thrown away. Ask for less.", name, mostLine))
	}
	var items []json.RawMessage
	var success *bool
	for _, key := range []struct {
		name string
		raw  json.RawMessage
		into any
		is   string
	}{{"content_items", a.Items, &items, "a list"}, {"success", a.Success, &success, "true or false"}} {
		if key.raw == nil || string(key.raw) == "null" || json.Unmarshal(key.raw, key.into) != nil {
			given := "is missing"
			if key.raw != nil {
				given = "is " + tools.Visible(string(key.raw), longestShown)
			}
			return tools.Refuse(fmt.Sprintf("%s answered in another form than agreed, so that nobody knows what came of the call: %s %s, and has to be %s. Look at what it has done.", name, key.name, given, key.is))
		}
	}
	r := resultOf(ctx, items)
	if r.Failed = !*success; r.Output == "" {
		r.Output = name + " printed nothing."
		if r.Failed {
			r.Output = name + " failed, and said nothing of it."
		}
	}
	return r
}

// longestShown is how many bytes are shown of what stands wrongly under a key.
const longestShown = 80

// served is a program that was started once.
type served struct {
	*child
	ready  chan struct{} // closed when it says that calls can come
	mute   chan struct{} // closed when it writes no more
	over   chan struct{} // closed when it has ended
	status sandbox.Status
	err    error
	silent bool // it was ended, since it wrote no more and did not end by itself

	mu      sync.Mutex
	waiting string      // id of the call that is under way
	answers chan answer // for it; nil where there is none
}

func serve(p Program, log io.Writer) (*served, error) {
	s := &served{ready: make(chan struct{}), mute: make(chan struct{}), over: make(chan struct{})}
	c, err := p.start(func(from io.Reader) {
		defer close(s.mute)
		s.read(from, log)
	}, log)
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

// isOver says whether the program can answer no more: it has ended, or closed its standard
// output, and is ended for that.
func (s *served) isOver() bool {
	select {
	case <-s.over:
		return true
	case <-s.mute:
		s.endMute()
		return true
	default:
		return false
	}
}

// endWait is how long a program that closed its standard output has to end by itself: a busy
// machine may take a while to end a process.
const endWait = 2 * time.Second

// endMute ends a program that writes no more, unless it is about to end by itself.
func (s *served) endMute() {
	select {
	case <-s.over:
	case <-time.After(endWait):
		s.silent = true
		s.stop()
	}
}

// how says how the program ended, for a sentence.
func (s *served) how() string {
	<-s.over
	switch {
	case s.silent:
		return "closed its standard output, was of no use any more and was ended"
	case s.err != nil:
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
		case <-s.mute: // so it is when it has ended, too
			s.endMute()
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
	read := long || line[0] == '{' && json.Unmarshal(line, &a) == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case read && s.answers != nil && (long || a.CallID == s.waiting):
		s.answers <- a
		s.answers = nil
	case read && a.CallID == nil && a.Ready == true:
		s.sayReady()
	default:
		fmt.Fprintf(log, "agent-ci: a line that answers no call under way: %s\n", line[:min(len(line), longestLogged)])
	}
}

// sayReady is called by one goroutine.
func (s *served) sayReady() {
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}
