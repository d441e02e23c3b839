package hooks

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// most is how many bytes a hook may write, to standard output and to standard error.
const most = 64 << 10

// drain is how long the streams of a hook that has ended are still read: what it left behind
// may hold them, and is waited for no longer.
const drain = 100 * time.Millisecond

// said is what a hook said before it ended by itself.
type said struct {
	output, errors []byte
	status         int
}

// errTooMuch says that a hook wrote more than most bytes.
var errTooMuch = fmt.Errorf("it wrote more than %d KiB", most>>10)

// start runs a program with input to its end, its time limit or its limit of output. An error
// says why there is no answer, for the end of a sentence about the hook; it is ctx's where that
// has ended.
func start(ctx context.Context, box *sandbox.Sandbox, c sandbox.Command, input []byte, limit time.Duration) (said, error) {
	ours, theirs, err := pipes()
	if err != nil {
		return said{}, err
	}
	defer closeAll(ours[:])
	c.Streams = &sandbox.Streams{Input: theirs[0], Output: theirs[1], Error: theirs[2]}
	p, err := box.Start(c)
	closeAll(theirs[:])
	if err != nil {
		return said{}, fmt.Errorf("it could not be started (%w)", err)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return follow(ctx, limited, p, ours, input, limit)
}

// follow feeds a program, reads what it says and waits for its end.
func follow(ctx, limited context.Context, p *sandbox.Process, ours [3]*os.File, input []byte, limit time.Duration) (said, error) {
	written := make(chan struct{})
	go func() { // a hook need not read what it is asked
		defer close(written)
		_, _ = ours[0].Write(input)
		_ = ours[0].Close()
	}()
	tooMuch := make(chan struct{}, 2)
	var texts [2]chan []byte
	for i := range texts {
		texts[i] = make(chan []byte, 1)
		go func() { texts[i] <- readMost(sandbox.Drain(ours[1+i]), tooMuch) }()
	}
	var problem error
	select {
	case <-p.Done():
	case <-tooMuch:
		problem = errTooMuch
	case <-limited.Done():
		problem = fmt.Errorf("it did not answer within %s", limit)
		if ctx.Err() != nil {
			problem = ctx.Err()
		}
	}
	p.Kill()
	status, err := p.Wait()
	for _, f := range ours {
		_ = f.SetDeadline(time.Now().Add(drain))
	}
	answer := said{<-texts[0], <-texts[1], status.ExitCode}
	_ = ours[0].SetDeadline(time.Now())
	<-written
	switch {
	case problem != nil:
		return answer, problem
	case err != nil:
		return answer, err
	case len(tooMuch) > 0:
		return answer, errTooMuch
	case status.Signal != "":
		return answer, fmt.Errorf("it was ended by the signal %s", status.Signal)
	}
	return answer, nil
}

// readMost reads a stream up to its end, its deadline or the limit, of which it tells.
func readMost(from io.Reader, tooMuch chan<- struct{}) []byte {
	text, _ := io.ReadAll(io.LimitReader(from, most+1))
	if len(text) > most {
		tooMuch <- struct{}{}
		return text[:most]
	}
	return text
}

// pipes are the standard streams of a program: the ends that are ours and those that it gets.
func pipes() (ours, theirs [3]*os.File, err error) {
	for i := range ours {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(ours[:])
			closeAll(theirs[:])
			return ours, theirs, fmt.Errorf("make a pipe: %w", err)
		}
		if ours[i], theirs[i] = read, write; i == 0 {
			ours[i], theirs[i] = write, read
		}
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
