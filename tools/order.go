package tools

import "sync"

// order runs mutating calls alone, after all earlier and before all later ones, of any caller.
// Reading calls run in parallel.
type order struct {
	mu           sync.Mutex
	lastMutating <-chan struct{}   // closed when the last call that mutates has ended; nil for none
	laterReads   []<-chan struct{} // each closed when a call behind that one has ended
}

// enqueue gives a call its place. It may run once all of before are closed, and closes ended.
func (o *order) enqueue(mutates bool) (before []<-chan struct{}, ended chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ended = make(chan struct{})
	if o.lastMutating != nil {
		before = append(before, o.lastMutating)
	}
	if mutates {
		before = append(before, o.laterReads...)
		o.lastMutating, o.laterReads = ended, nil
		return before, ended
	}
	o.laterReads = append(running(o.laterReads), ended)
	return before, ended
}

// running returns the calls in progress.
func running(calls []<-chan struct{}) []<-chan struct{} {
	left := calls[:0]
	for _, call := range calls {
		select {
		case <-call:
		default:
			left = append(left, call)
		}
	}
	return left
}
