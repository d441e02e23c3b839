package code

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/script"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

const (
	// maxWaiting bounds the results that wait for the engines of all cells, in bytes.
	maxWaiting = 64 << 20
	// maxSettled bounds the results in one message to an engine, in bytes, without its last result.
	maxSettled = 8 << 20
)

// scriptCell is a script with its engine, its calls and its unread output. It may outlive the call of
// exec that started it.
type scriptCell struct {
	id     string
	tools  *Tools
	engine *engine
	names  map[string]string // names of tools, by the names in scripts
	calls  *tools.ScriptCalls
	ctx    context.Context // of the script's calls
	cancel context.CancelFunc
	ended  chan struct{} // closed when the script has ended

	outputCount outputCount // used only by listen

	mu           sync.Mutex
	newsSignal   chan struct{}     // has a token if there is news for the model
	items        []message.Item    // output that the model has not got yet
	stored       map[string]string // values stored since the last result
	runningCalls map[int]bool      // calls without a result, by id
	results      []message.Settled // results that the engine has not got yet
	more         *sync.Cond        // signals new results, or the script's end
	stopped      string            // the reason why stop ended the script, or ""
	endReported  bool              // the engine has reported the script's end, or died
	end          message.End
}

// outputCount counts the engine's output. The engine counts, too, but is not trusted.
type outputCount struct{ items, bytes int }

// newCell returns a cell for an engine. Its calls end with the run, not with ctx, because the script may
// outlive the call of exec.
func newCell(ctx context.Context, t *Tools, e *engine, number int, names map[string]string) *scriptCell {
	c := &scriptCell{
		id: strconv.Itoa(number), tools: t, engine: e, names: names, calls: tools.ScriptCallsOf(ctx),
		ended: make(chan struct{}), newsSignal: make(chan struct{}, 1), stored: map[string]string{}, runningCalls: map[int]bool{},
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the script may outlive this call
	stay := context.AfterFunc(t.ctx, cancel)
	c.ctx, c.cancel = running, func() { stay(); cancel() }
	c.more = sync.NewCond(&c.mu)
	return c
}

// start starts goroutines that run the script until it ends or is stopped.
func (c *scriptCell) start(run message.Run) {
	var writer sync.WaitGroup
	writer.Go(func() { c.sendResults(run) })
	c.tools.running.Go(func() {
		c.finish(c.listen())
		close(c.ended)
		c.engine.end() // after ended, so that nobody waits for the process to exit
		writer.Wait()
		if c.calls != nil {
			c.calls.Wait()
		}
	})
}

// listen handles the engine's reports up to the last one. It returns an error if that is missing.
func (c *scriptCell) listen() error {
	for {
		var report message.Report
		if err := c.engine.reports.Read(&report); err != nil {
			return err
		}
		over, err := c.handleReport(report)
		if err != nil || over {
			return err
		}
	}
}

// handleReport handles a report, which is untrusted. over marks the last one. The error
// describes a violated limit.
func (c *scriptCell) handleReport(report message.Report) (over bool, err error) {
	if refused := c.tools.store(report.Stored); len(refused) > 0 {
		for _, key := range refused {
			delete(report.Stored, key)
		}
		words := fmt.Sprintf("[%d stored values were not kept, %.100q first: together with what other scripts stored they are too much]", len(refused), refused[0])
		report.Items = append(report.Items, message.Item{Kind: message.Text, Value: words})
	}
	for _, item := range report.Items {
		c.outputCount.items++
		if c.outputCount.bytes += len(item.Value); c.outputCount.bytes > message.MaxShown || c.outputCount.items > message.MaxItems {
			return false, errors.New("it showed more than a script may")
		}
	}
	c.redact(report.Items)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items = append(c.items, report.Items...)
	maps.Copy(c.stored, report.Stored)
	if report.Yield {
		c.notifyNews()
	}
	if report.End != nil {
		c.end, c.endReported = *report.End, true
		return true, nil
	}
	for _, call := range report.Calls {
		if err := c.call(call); err != nil {
			return false, err
		}
	}
	return false, nil
}

// redact removes secrets from new texts now, so that result need not take long. Outputs later repeats
// the search for secrets that span several texts.
func (c *scriptCell) redact(items []message.Item) {
	if c.tools.options.Outputs == nil || c.tools.options.Outputs.Redact == nil {
		return
	}
	const piece = 64 << 10
	for i, item := range items {
		if item.Kind != message.Text || c.ctx.Err() != nil { // the output of a cancelled script is not needed
			continue
		}
		var clean strings.Builder
		stream := secrets.Stream{Redact: c.tools.options.Outputs.Redact, Put: func(text string) { clean.WriteString(text) }}
		for rest := item.Value; rest != ""; rest = rest[min(piece, len(rest)):] {
			_, _ = stream.Write([]byte(rest[:min(piece, len(rest))])) // it can't fail
		}
		stream.Flush()
		items[i].Value = clean.String()
	}
}

// notifyNews wakes the waiter for the cell, which then answers the model. It never blocks: one pending
// signal is enough.
func (c *scriptCell) notifyNews() {
	select {
	case c.newsSignal <- struct{}{}:
	default:
	}
}

// call starts a call of the script.
func (c *scriptCell) call(call message.Call) error {
	if c.runningCalls[call.ID] || len(c.runningCalls) >= message.MaxCalls || len(call.Input) > message.MaxInput {
		return errors.New("it made more or larger calls than a script may")
	}
	c.runningCalls[call.ID] = true
	name, known := c.names[call.Tool]
	if !known || c.calls == nil {
		c.answer(call.ID, tools.Refuse("there is no tool "+strconv.Quote(call.Tool)))
		return nil
	}
	form := tools.Function
	if call.Text {
		form = tools.Freeform
	}
	c.calls.Start(c.ctx, tools.Call{Name: name, Input: call.Input, Form: form}, func(r tools.Result) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.Object != nil && r.Notes != "" {
			c.items = append(c.items, message.Item{Kind: message.Text, Value: strings.TrimSuffix(r.Notes, "\n")})
		}
		c.answer(call.ID, r)
	})
	return nil
}

// answer queues the result of a call for the script. If too many results wait, it queues an error
// instead. The caller holds c.mu.
func (c *scriptCell) answer(id int, r tools.Result) {
	delete(c.runningCalls, id)
	s := script.Settle(id, r)
	if c.tools.untakenBytes.Add(size(s)) > maxWaiting {
		c.tools.untakenBytes.Add(-size(s))
		s = message.Settled{ID: id, Error: "the results of this script and of others that wait to be read are too much at once; make fewer calls side by side"}
		c.tools.untakenBytes.Add(size(s))
	}
	c.results = append(c.results, s)
	c.more.Signal()
}

func size(s message.Settled) int64 { return int64(len(s.Value) + len(s.Error)) }

// sendResults sends the engine the script, and then the results of calls until the script has ended.
func (c *scriptCell) sendResults(run message.Run) {
	c.engine.sendOrder(message.Order{Run: &run})
	for {
		batch, over := c.batch()
		if over {
			return
		}
		c.engine.sendOrder(message.Order{Settled: batch})
	}
}

// batch waits for results of calls and takes up to maxSettled bytes of them. over means that the script
// has ended, so that no results are needed.
func (c *scriptCell) batch() (batch []message.Settled, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.results) == 0 && !c.endReported && c.stopped == "" {
		c.more.Wait()
	}
	if c.endReported || c.stopped != "" {
		return nil, true
	}
	n, bytes := 0, int64(0)
	for n < len(c.results) && bytes < maxSettled {
		bytes += size(c.results[n])
		n++
	}
	batch = c.results[:n]
	c.results = append([]message.Settled(nil), c.results[n:]...)
	c.tools.untakenBytes.Add(-bytes)
	return batch, false
}

// stop kills the script and waits for its end. why is the reason.
func (c *scriptCell) stop(why string) {
	c.mu.Lock()
	if c.stopped == "" && !c.endReported {
		c.stopped = why
	}
	c.more.Signal()
	c.mu.Unlock()
	c.cancel()
	c.engine.Kill()
	<-c.ended
}

// finish cancels pending calls and drops their results. err is the error of listen: if it is not nil,
// finish sets c.end, which the engine has not reported.
func (c *scriptCell) finish(err error) {
	c.cancel()
	c.mu.Lock()
	c.endReported = c.endReported || err != nil && c.stopped == ""
	c.more.Signal()
	c.mu.Unlock()
	how := ""
	if err != nil {
		how = c.engine.end()
	}
	if c.calls != nil {
		c.calls.Answered()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.results {
		c.tools.untakenBytes.Add(-size(s))
	}
	c.results = nil
	if err != nil {
		c.end = message.End{Failed: true, Error: describeLostEngine(err, how)}
	}
}

// describeLostEngine explains to the model why an engine has not reported the script's end. how
// describes the exit of the engine's process.
func describeLostEngine(err error, how string) string {
	switch {
	case strings.Contains(how, "memory"):
		return "Error: the script took more memory than a script has, and its engine died. Work on less at once."
	case errors.Is(err, io.EOF):
		return "Error: the engine of the script died, and the script with it. It " + how
	}
	return fmt.Sprintf("Error: the engine of the script was ended: %v", err)
}

// isOver reports whether the script has ended.
func (c *scriptCell) isOver() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
