package dynamic

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// Program is what answers calls: argv, and where it is started.
type Program struct {
	Sandbox *sandbox.Sandbox // nil for a tool that is told of only
	Argv    []string
	Dir     string
	Env     []string // all of the environment
}

// drainWait is how long the output of a program that has ended is still read while a process
// that it left behind holds it.
const drainWait = 100 * time.Millisecond

// child is a program that was started, with our ends of its streams.
type child struct {
	*sandbox.Process
	input, output, errors *os.File
	readers               sync.WaitGroup
}

// start starts the program, and reads what it writes.
func (p Program) start(output func(io.Reader), errors io.Writer) (*child, error) {
	var ours, theirs [3]*os.File
	for i := range ours {
		reads, writes, err := os.Pipe()
		if err != nil {
			closeAll(ours[:i], theirs[:i])
			return nil, fmt.Errorf("make a pipe for %s: %w", p.Argv[0], err)
		}
		if ours[i], theirs[i] = reads, writes; i == 0 {
			ours[i], theirs[i] = writes, reads
		}
	}
	defer closeAll(theirs[:])
	process, err := p.Sandbox.Start(sandbox.Command{
		Argv: p.Argv, Dir: p.Dir, Env: p.Env, Streams: &sandbox.Streams{Input: theirs[0], Output: theirs[1], Error: theirs[2]},
	})
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	c := &child{Process: process, input: ours[0], output: ours[1], errors: ours[2]}
	c.readers.Go(func() { output(sandbox.Drain(c.output)) })
	c.readers.Go(func() { _, _ = io.Copy(errors, sandbox.Drain(c.errors)) })
	return c, nil
}

// end waits until the program has ended, and for what is left of its output.
func (c *child) end() (sandbox.Status, error) {
	<-c.Done()
	status, err := c.Wait()
	_ = c.input.Close()
	for _, stream := range []*os.File{c.output, c.errors} {
		_ = stream.SetReadDeadline(time.Now().Add(drainWait))
	}
	c.readers.Wait()
	closeAll([]*os.File{c.output, c.errors})
	return status, err
}

func closeAll(lists ...[]*os.File) {
	for _, files := range lists {
		for _, f := range files {
			_ = f.Close()
		}
	}
}

// ended says how a program ended, for a sentence.
func ended(status sandbox.Status) string {
	if status.Signal != "" {
		return "was ended by " + status.Signal
	}
	return fmt.Sprintf("ended with exit status %d", status.ExitCode)
}
