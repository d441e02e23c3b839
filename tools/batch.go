package tools

import (
	"context"
	"sync"
)

// Batch is the calls of one response. They can be handed in one by one as the
// response arrives. Start and Wait are called from one goroutine.
type Batch struct {
	dispatcher *Dispatcher
	ctx        context.Context
	slots      chan struct{}
	running    sync.WaitGroup
	results    []*Result

	told   <-chan struct{}   // closed when Started was called for the last call
	alone  <-chan struct{}   // closed when the last mutating call has ended
	shared []<-chan struct{} // each closed when a call after that one has ended
}

// Begin makes an empty batch. Its Wait must be called.
func (d *Dispatcher) Begin(ctx context.Context) *Batch {
	parallel := d.Parallel
	if parallel <= 0 {
		parallel = DefaultParallel
	}
	return &Batch{
		dispatcher: d, ctx: ctx,
		slots: make(chan struct{}, parallel),
		told:  closed(), alone: closed(),
	}
}

// Start starts a call as soon as the calls before it let it. It does not wait.
func (b *Batch) Start(call Call) {
	t := b.dispatcher.target(call)
	told, ended := make(chan struct{}), make(chan struct{})
	before := []<-chan struct{}{b.told, b.alone}
	if t.Mutates {
		before = append(before, b.shared...)
		b.alone, b.shared = ended, nil
	} else {
		b.shared = append(b.shared, ended)
	}
	b.told = told

	result := new(Result)
	b.results = append(b.results, result)
	b.running.Go(func() {
		defer close(ended)
		for _, earlier := range before {
			<-earlier
		}
		b.slots <- struct{}{}
		defer func() { <-b.slots }()
		refused := b.dispatcher.started(t)
		close(told)
		*result = b.dispatcher.run(b.ctx, t, refused)
	})
}

// Wait waits for all calls and returns their results in the order of Start.
func (b *Batch) Wait() []Result {
	b.running.Wait()
	results := make([]Result, len(b.results))
	for i, result := range b.results {
		results[i] = *result
	}
	return results
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
