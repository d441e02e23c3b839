package tools

import "sync"

// order is the order of calls from all callers. A mutating call runs alone, after all earlier and before all later calls.
// Reading calls run in parallel.
type order struct {
	mu           sync.Mutex
	lastMutating <-chan struct{}   // closed when the last mutating call has ended; nil if there was none
	laterReads   []<-chan struct{} // one for each reading call after it, closed when that call has ended
}

// enqueue gives a call its place in the order. The call may run when all channels in before are closed. The caller must
// close ended when the call has ended.
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
	o.laterReads = append(unclosed(o.laterReads), ended)
	return before, ended
}

// unclosed returns the channels that are not closed. It reuses the slice.
func unclosed(calls []<-chan struct{}) []<-chan struct{} {
	open := calls[:0]
	for _, call := range calls {
		select {
		case <-call:
		default:
			open = append(open, call)
		}
	}
	return open
}
