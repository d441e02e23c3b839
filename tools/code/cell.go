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
	// maxWaiting is the maximum size of the results that wait for the engines of all cells, in bytes.
	maxWaiting = 64 << 20
	// maxSettled is the size of results, in bytes, after which no further one is added to a message to an engine.
	maxSettled = 8 << 20
)

// scriptCell is a started script with its engine, its calls and its unread output. It may outlive the call of exec that
// started it.
type scriptCell struct {
	id     string
	tools  *Tools
	engine *engine
	calls  cellCalls
	ended  chan struct{} // closed when the script has ended

	shownItems, shownBytes int // reported so far; used only by listen

	mu             sync.Mutex
	newsSignal     chan struct{} // has a token if there is news for the model
	unread         unreadOutput
	results        []message.Settled // results that the engine has not got yet
	resultsChanged *sync.Cond        // signals new results, or the script's end
	stopped        bool              // stop has ended the script
	end            *message.End      // nil until the engine has reported the script's end, or died
}

// cellCalls makes the calls of a script.
type cellCalls struct {
	toolNames   map[string]string // names of tools, by the names in scripts
	scriptCalls *tools.ScriptCalls
	ctx         context.Context // ends with the script and with the run
	cancel      context.CancelFunc
	running     map[int]bool // calls without a result, by id; guarded by the cell's mu
}

// unreadOutput is a script's output that the model has not got yet.
type unreadOutput struct {
	items  []message.Item
	stored map[string]string // stored values
}

// newCell returns a cell for an engine. execCtx is the context of the exec call.
func newCell(execCtx context.Context, t *Tools, e *engine, number int, toolNames map[string]string) *scriptCell {
	c := &scriptCell{
		id: strconv.Itoa(number), tools: t, engine: e, calls: newCellCalls(execCtx, t.ctx, toolNames),
		ended: make(chan struct{}), newsSignal: make(chan struct{}, 1), unread: unreadOutput{stored: map[string]string{}},
	}
	c.resultsChanged = sync.NewCond(&c.mu)
	return c
}

// newCellCalls returns the calls of a script. They end with the run and not with the exec call, because the
// script may outlive that call.
func newCellCalls(execCtx, runCtx context.Context, toolNames map[string]string) cellCalls {
	ctx, cancel := context.WithCancel(context.WithoutCancel(execCtx))
	stopWatchingRun := context.AfterFunc(runCtx, cancel)
	return cellCalls{
		toolNames: toolNames, scriptCalls: tools.ScriptCallsOf(execCtx), ctx: ctx,
		cancel: func() { stopWatchingRun(); cancel() }, running: map[int]bool{},
	}
}

// start runs the script in the background until it ends or is stopped.
func (c *scriptCell) start(run message.Run) {
	var writer sync.WaitGroup
	writer.Go(func() { c.sendResults(run) })
	c.tools.running.Go(func() {
		c.finish(c.listen())
		close(c.ended)
		c.engine.end() // after ended, so that nobody waits for the process to exit
		writer.Wait()
		c.calls.scriptCalls.Wait()
	})
}

// listen handles the engine's reports until the script's end. It returns an error if the engine ends before, or violates a
// limit.
func (c *scriptCell) listen() error {
	for {
		var report message.Report
		if err := c.engine.reports.Read(&report); err != nil {
			return err
		}
		last, err := c.handleReport(report)
		if err != nil {
			return err
		}
		if last {
			return nil
		}
	}
}

// handleReport handles a report of the engine, which is not trusted. last is true for the script's end. It returns an
// error if the report violates a limit.
func (c *scriptCell) handleReport(report message.Report) (last bool, err error) {
	if refused := c.tools.storeValues(report.Stored); len(refused) > 0 {
		for _, key := range refused {
			delete(report.Stored, key)
		}
		words := fmt.Sprintf("[%d stored values were not kept, %.100q first: together with what other scripts stored they are too much]", len(refused), refused[0])
		report.Items = append(report.Items, message.Item{Kind: message.Text, Value: words})
	}
	for _, item := range report.Items {
		c.shownBytes += len(item.Value)
	}
	c.shownItems += len(report.Items)
	if c.shownItems > message.MaxItems || c.shownBytes > message.MaxShown { // the engine limits them, too
		return false, errors.New("it showed more than a script may")
	}
	c.redact(report.Items)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread.items = append(c.unread.items, report.Items...)
	maps.Copy(c.unread.stored, report.Stored)
	if report.Yield {
		c.notifyNews()
	}
	if report.End != nil {
		c.end = report.End
		return true, nil
	}
	for _, call := range report.Calls {
		if err := c.startCall(call); err != nil {
			return false, err
		}
	}
	return false, nil
}

// redact removes secrets from the texts of new items, so that result need not spend time on it. Outputs later searches
// for secrets that span several texts.
func (c *scriptCell) redact(items []message.Item) {
	redact := c.tools.options.Outputs.Redact
	if redact == nil {
		return
	}
	for i, item := range items {
		if item.Kind != message.Text || c.calls.ctx.Err() != nil { // the output of a cancelled script is not needed
			continue
		}
		var redacted strings.Builder
		stream := secrets.NewStream(redact, func(text string) { redacted.WriteString(text) })
		_, _ = io.Copy(stream, struct{ io.Reader }{strings.NewReader(item.Value)}) // in pieces; it can't fail
		stream.Flush()
		items[i].Value = redacted.String()
	}
}

// notifyNews wakes awaitResult, so that the model gets the output so far. It never blocks: one pending signal is enough.
func (c *scriptCell) notifyNews() {
	select {
	case c.newsSignal <- struct{}{}:
	default:
	}
}

// startCall starts a call that the script makes. It returns an error if the call violates a limit. The caller holds c.mu.
func (c *scriptCell) startCall(call message.Call) error {
	isDuplicate := c.calls.running[call.ID]
	if isDuplicate || len(c.calls.running) >= message.MaxCalls || len(call.Input) > message.MaxInput {
		return errors.New("it made more or larger calls than a script may")
	}
	c.calls.running[call.ID] = true
	name, known := c.calls.toolNames[call.Tool]
	if !known {
		c.queueResult(call.ID, tools.Refuse("there is no tool "+strconv.Quote(call.Tool)))
		return nil
	}
	form := tools.Function
	if call.Text {
		form = tools.Freeform
	}
	c.calls.scriptCalls.Start(c.calls.ctx, tools.Call{Name: name, Input: call.Input, Form: form}, func(r tools.Result) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.Object != nil && r.Notes != "" {
			c.unread.items = append(c.unread.items, message.Item{Kind: message.Text, Value: strings.TrimSuffix(r.Notes, "\n")})
		}
		c.queueResult(call.ID, r)
	})
	return nil
}

// queueResult queues the result of a call for the engine. If the waiting results exceed maxWaiting, it queues an error
// instead. The caller holds c.mu.
func (c *scriptCell) queueResult(callID int, r tools.Result) {
	delete(c.calls.running, callID)
	settled := script.Settle(callID, r)
	if c.tools.untakenBytes.Add(sizeOf(settled)) > maxWaiting {
		c.tools.untakenBytes.Add(-sizeOf(settled))
		settled = message.Settled{ID: callID, Error: "the results of this script and of others that wait to be read are too much at once; make fewer calls side by side"}
		c.tools.untakenBytes.Add(sizeOf(settled))
	}
	c.results = append(c.results, settled)
	c.resultsChanged.Signal()
}

// sizeOf returns the size of a call's result in bytes.
func sizeOf(s message.Settled) int64 { return int64(len(s.Value) + len(s.Error)) }

// sendResults sends the engine the script, and then the results of calls until the script has ended.
func (c *scriptCell) sendResults(run message.Run) {
	c.engine.sendOrder(message.Order{Run: &run})
	for {
		results, needed := c.takeResults()
		if !needed {
			return
		}
		c.engine.sendOrder(message.Order{Settled: results})
	}
}

// takeResults waits for results of calls and takes the first ones, about maxSettled bytes. needed is false when the
// script has ended and needs no results.
func (c *scriptCell) takeResults() (results []message.Settled, needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.results) == 0 && !c.isEnding() {
		c.resultsChanged.Wait()
	}
	if c.isEnding() {
		return nil, false
	}
	n, bytes := 0, int64(0)
	for n < len(c.results) && bytes < maxSettled {
		bytes += sizeOf(c.results[n])
		n++
	}
	results = c.results[:n]
	c.results = append([]message.Settled(nil), c.results[n:]...)
	c.tools.untakenBytes.Add(-bytes)
	return results, true
}

// isEnding reports whether the script has ended or is being stopped, and needs no results. The caller holds c.mu.
func (c *scriptCell) isEnding() bool { return c.stopped || c.end != nil }

// stop kills the script and waits for its end.
func (c *scriptCell) stop() {
	c.mu.Lock()
	c.stopped = c.stopped || c.end == nil
	c.resultsChanged.Signal()
	c.mu.Unlock()
	c.calls.cancel()
	c.engine.Kill()
	<-c.ended
}

// finish cancels pending calls and drops their results. err is the result of listen. If it is not nil, finish sets c.end,
// because the engine has not reported the script's end.
func (c *scriptCell) finish(err error) {
	c.calls.cancel()
	if err != nil {
		c.mu.Lock()
		c.end = &message.End{Failed: true} // so that a later stop does not set stopped
		c.resultsChanged.Signal()
		c.mu.Unlock()
		c.end.Error = describeLostEngine(err, c.engine.end())
	}
	c.calls.scriptCalls.Answered() // from here on, no call adds results
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resultsChanged.Signal()
	for _, s := range c.results {
		c.tools.untakenBytes.Add(-sizeOf(s))
	}
	c.results = nil
}

// describeLostEngine returns a text that tells the model why an engine has not reported the script's end. err is the
// result of listen, exit describes how the engine's process ended.
func describeLostEngine(err error, exit string) string {
	switch {
	case strings.Contains(exit, "memory"):
		return "Error: the script took more memory than a script has, and its engine died. Work on less at once."
	case errors.Is(err, io.EOF):
		return "Error: the engine of the script died, and the script with it. It " + exit
	}
	return fmt.Sprintf("Error: the engine of the script was ended: %v", err)
}

// hasEnded reports whether the script has ended.
func (c *scriptCell) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
