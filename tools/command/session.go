package command

import (
	"slices"
	"sync"
)

const (
	// sessionLimit is the maximum number of sessions, as in the reference implementation.
	sessionLimit = 64
	// protectedSessions is the number of most recently used sessions that are never dropped, even if they have ended.
	protectedSessions = 8
	// firstSession is the number of the first session. The reference implementation takes random numbers from 1000 on.
	firstSession = 1000
)

// session is a command that later calls can wait for or write to.
type session struct {
	*runningCommand
	id        int
	pollToken chan struct{} // lock of the call that waits; holds one token
}

// discard kills the command and drops its output.
func (s *session) discard() {
	_ = s.kill().Close() // nobody will read the output
}

// ended reports whether the command has exited.
func (s *session) ended() bool { return s.process.Exited() }

// sessions holds the sessions of an agent. The zero value is ready for use.
type sessions struct {
	mu    sync.Mutex
	live  []*session // the least recently used first
	count int        // number of sessions ever added
}

// add adds a session for a command. Its number is id, or the next number if id is 0. If there are sessionLimit sessions,
// it removes one and returns it as pushedOut, for the caller to discard: the first that has ended, or else the least
// recently used.
func (s *sessions) add(r *runningCommand, id int) (added, pushedOut *session) {
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
	added = &session{runningCommand: r, id: id, pollToken: make(chan struct{}, 1)}
	s.count++
	s.live = append(s.live, added)
	return added, pushedOut
}

// markUsed returns the session with this number and marks it as just used. It returns nil if there is none.
func (s *sessions) markUsed(id float64) *session {
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

// remove removes a session.
func (s *sessions) remove(ended *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(l *session) bool { return l == ended })
}

// removeAll removes all sessions and returns them.
func (s *sessions) removeAll() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.live
	s.live = nil
	return all
}

// ids returns the sorted numbers of all sessions.
func (s *sessions) ids() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int, len(s.live))
	for i, session := range s.live {
		ids[i] = session.id
	}
	slices.Sort(ids)
	return ids
}
