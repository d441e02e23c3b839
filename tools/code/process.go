package code

import (
	"context"
	"fmt"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

// engine is a process for one script.
type engine struct {
	*attached.Program
	reports *message.Reader // reads standard output
	stderr  clip.Head       // the beginning of standard error
	endOnce func() string   // calls close once
}

// maxStderrBytes bounds the kept standard error of an engine, in bytes.
const maxStderrBytes = 300

// environ is the engine's complete environment. It uses only 2 processors, because the run's commands need the others.
var environ = []string{"GOMAXPROCS=2", "GOTRACEBACK=none", "TZ=UTC"}

// startEngine starts an engine process and waits until it is ready for a script.
func (t *Tools) startEngine(ctx context.Context) (_ *engine, err error) {
	e := &engine{stderr: clip.Head{Limit: maxStderrBytes}}
	e.Program, err = attached.Start(t.options.Sandbox.Start, sandbox.Command{Argv: t.options.Program, Dir: "/", Env: environ}, attached.Streams{Errors: attached.To(&e.stderr)})
	if err != nil {
		return nil, err
	}
	e.reports, e.endOnce = message.NewReader(e.Output), sync.OnceValue(e.close)
	defer context.AfterFunc(ctx, e.Kill)()
	var first message.Report
	if err := e.reports.Read(&first); err != nil || !first.Ready {
		return nil, fmt.Errorf("%s %s", t.options.Program[0], e.end()) // the end of the process says more than err
	}
	return e, nil
}

// sendOrder sends an order to the engine. It ignores errors, because a dead engine is noticed when its reports are read.
func (e *engine) sendOrder(order message.Order) { _ = message.Write(e.Input, order) }

// end kills the process and waits for it. It returns a description of how the process ended.
func (e *engine) end() string { return e.endOnce() }

// close kills the process, waits for it, and returns a description of how it ended. Only end calls it, and only once.
func (e *engine) close() string {
	e.Close()
	exit := attached.Ending(e.Wait())
	if line := e.stderr.Line(); line != "" {
		exit += ": " + line
	}
	return exit
}

// Warm starts a spare engine in the background for the next script, unless there is one.
func (t *Tools) Warm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.spare != nil {
		return
	}
	spare := sync.OnceValues(func() (*engine, error) { return t.startEngine(t.ctx) })
	t.spare = spare
	t.running.Go(func() { _, _ = spare() })
}

// takeEngine returns the spare engine if it still runs, or else a new one.
func (t *Tools) takeEngine(ctx context.Context) (*engine, error) {
	t.mu.Lock()
	spare := t.spare
	t.spare = nil
	t.mu.Unlock()
	if spare != nil {
		if e, err := spare(); err == nil {
			if !e.Exited() {
				return e, nil
			}
			e.end()
		}
	}
	return t.startEngine(ctx)
}
