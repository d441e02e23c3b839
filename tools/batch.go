package tools

import (
	"context"
	"sync"
)

// Batch is the calls of one response, handed in one by one as the response
// arrives. Its methods are called from one goroutine.
//
// A call that doesn't mutate starts when those before it let it, while the rest
// of the response is still on its way. One that mutates, or runs a script, waits until Commit says
// that the response is whole, and so do those behind it. One that runs a script runs behind all
// calls before it and ahead of all behind it: nobody knows what it reads and changes. When the response
// breaks off, Discard keeps all that has not started from ever starting. What
// has started are the first calls of the batch, without a gap: they run to
// their end, and whoever holds the conversation goes on behind the last of them
// instead of asking for the same response again. So no call runs twice, none
// that ran is forgotten, and nothing is changed for a response that failed.
type Batch struct {
	dispatcher *Dispatcher
	ctx        context.Context
	slots      chan struct{}
	running    sync.WaitGroup
	results    []*Result

	decided chan struct{}     // closed by Commit and Discard
	calls   []<-chan struct{} // each closed when a call has ended
	script  <-chan struct{}   // that of the last call that runs a script
	told    <-chan struct{}   // closed when it is certain whether the last call starts

	mu      sync.Mutex
	started int
	over    bool // nothing starts any more
}

// Begin makes an empty batch. It ends with Commit or Discard, and Wait.
func (d *Dispatcher) Begin(ctx context.Context) *Batch {
	return &Batch{
		dispatcher: d, ctx: ctx,
		slots:   make(chan struct{}, parallelCalls),
		decided: make(chan struct{}),
		told:    closed(), script: closed(),
	}
}

// Start starts a call as soon as it may. It does not wait.
func (b *Batch) Start(call Call) {
	t := b.dispatcher.target(call)
	enter, turn := b.place(t), b.told
	told, over := make(chan struct{}), make(chan struct{})
	b.told, b.calls = told, append(b.calls, over)
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
		if !b.starts() {
			close(told)
			return
		}
		refused := b.dispatcher.started(t)
		close(told)
		*result = b.dispatcher.run(b.ctx, t, refused)
	})
}

// place is that of a call in the order of all calls, once those before it in the batch have theirs. A
// script has none, since the calls that it makes have theirs.
func (b *Batch) place(t target) (enter func() (before []<-chan struct{}, ended chan struct{})) {
	if t.scripts() {
		before := append([]<-chan struct{}{b.decided}, b.calls...)
		return func() ([]<-chan struct{}, chan struct{}) { return before, make(chan struct{}) }
	}
	script := b.script
	return func() ([]<-chan struct{}, chan struct{}) {
		<-script
		before, ended := b.dispatcher.line().enter(t.Mutates)
		if t.Mutates {
			before = append(before, b.decided)
		}
		return before, ended
	}
}

// starts decides whether the call whose turn it is may start.
func (b *Batch) starts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.started++
	}
	return !b.over
}

// Commit says that the response is whole: all calls of the batch will run.
func (b *Batch) Commit() { close(b.decided) }

// Discard says that the response broke off, and returns how many calls have
// started; the others never will.
func (b *Batch) Discard() (started int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	close(b.decided)
	return b.started
}

// Wait waits for the calls that started, which after Commit are all, and
// returns their results in the order of Start.
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
