package command

import (
	"slices"
	"sync"
)

const (
	// sessionLimit is how many sessions there are at once, as the reference
	// implementation has it.
	sessionLimit = 64
	// protectedSessions is the number of recently used sessions never dropped, even ended ones with
	// unread output.
	protectedSessions = 8
	// firstSession is the first session's number; the reference implementation
	// takes random ones from 1000 on.
	firstSession = 1000
)

// session is a running command available to later calls.
type session struct {
	*startedCommand
	id        int
	pollToken chan struct{} // has one token, held by the waiting call
}

// discard kills the command and drops its output.
func (s *session) discard() {
	_ = s.kill().Close() // nobody is left to read it
}

func (s *session) ended() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// sessions are the live sessions, the least recently used first. The zero
// value is ready.
type sessions struct {
	mu    sync.Mutex
	live  []*session
	count int // of all that there ever were
}

// add makes a session of r with number id, or the next for 0. If there are too many, it returns the
// one to discard: an ended one, or the least recently used.
func (s *sessions) add(r *startedCommand, id int) (added, pushedOut *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) >= sessionLimit {
		i := max(0, slices.IndexFunc(s.live[:len(s.live)-protectedSessions], (*session).ended))
		pushedOut = s.live[i]
		s.live = slices.Delete(s.live, i, i+1)
	}
	if id == 0 {
		id = firstSession + s.count
	}
	added = &session{startedCommand: r, id: id, pollToken: make(chan struct{}, 1)}
	s.count++
	s.live = append(s.live, added)
	return added, pushedOut
}

// use finds a session and marks it as used.
func (s *sessions) use(id float64) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.live, func(l *session) bool { return float64(l.id) == id })
	if i < 0 {
		return nil
	}
	found := s.live[i]
	s.live = append(slices.Delete(s.live, i, i+1), found)
	return found
}

func (s *sessions) remove(gone *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(l *session) bool { return l == gone })
}

func (s *sessions) removeAll() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.live
	s.live = nil
	return all
}

// ids returns the numbers of sessions that run or have unread output.
func (s *sessions) ids() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int, len(s.live))
	for i, l := range s.live {
		ids[i] = l.id
	}
	slices.Sort(ids)
	return ids
}
