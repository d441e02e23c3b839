package tools

import (
	"context"
	"sync"
)

// Batch runs the calls of one response, which are added while the response arrives. Use it from one goroutine.
//
// A reading call can start before the response is complete. A mutating call or a script waits for Commit, and so do all
// later calls. A script runs after all earlier calls and before all later ones, because its effects are unknown.
//
// If the response breaks off, Discard prevents further calls from starting. The started calls are always the first
// ones, without a gap. They run to their end, and the conversation continues after them instead of repeating the
// request. So no call runs twice, and an incomplete response changes nothing.
type Batch struct {
	dispatcher *Dispatcher
	ctx        context.Context
	slots      chan struct{}
	running    sync.WaitGroup
	results    []*Result

	committed       chan struct{}     // closed by Commit and Discard
	callEnds        []<-chan struct{} // each closed when a call has ended
	lastScriptEnd   <-chan struct{}   // closed when the last script so far has ended
	lastCallDecided <-chan struct{}   // closed when the last call has started or never will

	mu      sync.Mutex
	started int
	stopped bool // no more calls start
}

// Begin returns an empty batch. Call Commit or Discard, and then Wait.
func (d *Dispatcher) Begin(ctx context.Context) *Batch {
	return &Batch{
		dispatcher: d, ctx: ctx,
		slots:           make(chan struct{}, parallelCalls),
		committed:       make(chan struct{}),
		lastCallDecided: closedChannel(), lastScriptEnd: closedChannel(),
	}
}

// Start adds a call, which starts in the background as soon as it may run.
func (b *Batch) Start(call Call) {
	t := b.dispatcher.resolveTarget(call)
	enter, previousDecided := b.enqueue(t), b.lastCallDecided
	decided := make(chan struct{}) // closed when the call has started or never will
	done := make(chan struct{})    // closed when it has ended
	b.lastCallDecided, b.callEnds = decided, append(b.callEnds, done)
	if t.runsScript() {
		b.lastScriptEnd = done
	}

	result := new(Result)
	b.results = append(b.results, result)
	b.running.Go(func() {
		defer close(done)
		<-previousDecided
		before, ended := enter()
		defer close(ended)
		for _, earlier := range before {
			<-earlier
		}
		b.slots <- struct{}{} // wait until fewer than parallelCalls run
		defer func() { <-b.slots }()
		if !b.countStart() {
			close(decided)
			return
		}
		refused := b.dispatcher.reportStart(t)
		close(decided)
		*result = b.dispatcher.run(b.ctx, t, refused)
	})
}

// enqueue returns the function enter, which gives a call its place in the order of all calls, after the batch's last
// script so far. Call enter when the previous call of the batch has started or never will. The call may run when all
// channels in before are closed. Close ended when it has ended. A script itself has no place in the order, but the calls
// that it makes have.
func (b *Batch) enqueue(t callTarget) (enter func() (before []<-chan struct{}, ended chan struct{})) {
	if t.runsScript() {
		before := append([]<-chan struct{}{b.committed}, b.callEnds...)
		return func() ([]<-chan struct{}, chan struct{}) { return before, make(chan struct{}) }
	}
	scriptEnd := b.lastScriptEnd
	return func() ([]<-chan struct{}, chan struct{}) {
		<-scriptEnd
		before, ended := b.dispatcher.callOrder().enqueue(t.Mutates)
		if t.Mutates {
			before = append(before, b.committed)
		}
		return before, ended
	}
}

// countStart counts a call as started and returns true, or returns false after Discard.
func (b *Batch) countStart() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		b.started++
	}
	return !b.stopped
}

// Commit marks the response as complete, so that all calls run.
func (b *Batch) Commit() { close(b.committed) }

// Discard prevents calls that have not started from starting, and returns the number of started calls.
func (b *Batch) Discard() (started int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	close(b.committed)
	return b.started
}

// Wait waits for the started calls and returns their results in order of Start.
func (b *Batch) Wait() []Result {
	b.running.Wait()
	results := make([]Result, b.started)
	for i := range results {
		results[i] = *b.results[i]
	}
	return results
}

// closedChannel returns a channel that is closed.
func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
