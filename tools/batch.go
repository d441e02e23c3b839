package tools

import (
	"context"
	"sync"
)

// Batch holds the calls of one response, added while the response arrives. Use it from one
// goroutine.
//
// A reading call starts as soon as those before it permit, before the response is complete. A mutating call or a script waits
// for Commit, and so do the calls behind it. A script runs after all calls before it and before all behind it, because its
// effects are unknown. After an aborted response, Discard keeps the remaining calls from starting. The started ones are the
// first calls without a gap. They run to their end, and the conversation continues behind them instead of repeating the
// request. So no call runs twice or is forgotten, and a failed response changes nothing.
type Batch struct {
	dispatcher *Dispatcher
	ctx        context.Context
	slots      chan struct{}
	running    sync.WaitGroup
	results    []*Result

	committed       chan struct{}     // closed by Commit and Discard
	calls           []<-chan struct{} // each closed when a call has ended
	script          <-chan struct{}   // that of the last call that runs a script
	lastCallDecided <-chan struct{}   // closed when it is certain whether the last call starts

	mu      sync.Mutex
	started int
	stopped bool // nothing starts any more
}

// Begin makes an empty batch. It ends with Commit or Discard, and Wait.
func (d *Dispatcher) Begin(ctx context.Context) *Batch {
	return &Batch{
		dispatcher: d, ctx: ctx,
		slots:           make(chan struct{}, parallelCalls),
		committed:       make(chan struct{}),
		lastCallDecided: closed(), script: closed(),
	}
}

// Start starts a call as soon as it may. It does not wait.
func (b *Batch) Start(call Call) {
	t := b.dispatcher.target(call)
	enter, turn := b.enqueue(t), b.lastCallDecided
	told, over := make(chan struct{}), make(chan struct{})
	b.lastCallDecided, b.calls = told, append(b.calls, over)
	if t.scripts() {
		b.script = over
	}

	result := new(Result)
	b.results = append(b.results, result)
	b.running.Go(func() {
		defer close(over)
		<-turn
		before, ended := enter()
		defer close(ended)
		for _, earlier := range before {
			<-earlier
		}
		b.slots <- struct{}{}
		defer func() { <-b.slots }()
		if !b.awaitStart() {
			close(told)
			return
		}
		refused := b.dispatcher.started(t)
		close(told)
		*result = b.dispatcher.run(b.ctx, t, refused)
	})
}

// enqueue registers a call in the order of all calls, after those before it in the batch. Scripts are
// not registered; their calls are.
func (b *Batch) enqueue(t callTarget) (enter func() (before []<-chan struct{}, ended chan struct{})) {
	if t.scripts() {
		before := append([]<-chan struct{}{b.committed}, b.calls...)
		return func() ([]<-chan struct{}, chan struct{}) { return before, make(chan struct{}) }
	}
	script := b.script
	return func() ([]<-chan struct{}, chan struct{}) {
		<-script
		before, ended := b.dispatcher.callOrder().enqueue(t.Mutates)
		if t.Mutates {
			before = append(before, b.committed)
		}
		return before, ended
	}
}

// awaitStart reports whether the next call may start.
func (b *Batch) awaitStart() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		b.started++
	}
	return !b.stopped
}

// Commit marks the response as complete: all calls will run.
func (b *Batch) Commit() { close(b.committed) }

// Discard marks the response as aborted and returns the number of started calls. The others never
// start.
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

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
