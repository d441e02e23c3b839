package tools

import "sync"

// order runs mutating calls alone, after all earlier and before all later ones, of any caller.
// Reading calls run in parallel.
type order struct {
	mu     sync.Mutex
	alone  <-chan struct{}   // closed when the last call that mutates has ended; nil for none
	shared []<-chan struct{} // each closed when a call behind that one has ended
}

// enter gives a call its place. It may run once all of before are closed, and closes ended.
func (o *order) enter(mutates bool) (before []<-chan struct{}, ended chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ended = make(chan struct{})
	if o.alone != nil {
		before = append(before, o.alone)
	}
	if mutates {
		before = append(before, o.shared...)
		o.alone, o.shared = ended, nil
		return before, ended
	}
	o.shared = append(running(o.shared), ended)
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
