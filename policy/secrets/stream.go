package secrets

import "bytes"

const (
	// streamWindow is the number of bytes to gather before output. streamOverlap is the number of bytes
	// to hold back, because they may begin a secret.
	streamWindow  = 128 << 10
	streamOverlap = 16 << 10
	// streamPatience bounds the bytes gathered without a place to cut.
	streamPatience = 1 << 20
	// cutAttempts bounds the search for a cut.
	cutAttempts = 8
)

// Stream removes secrets from text in pieces. It holds at most 1 MiB and the last piece.
type Stream struct {
	redact    func(text string) string
	put       func(clean string)
	pending   []byte
	nextCutAt int // length of pending for the next attempt to cut it
}

// NewStream returns a stream whose text redact removes secrets from. put receives the result, in order.
func NewStream(redact func(text string) string, put func(clean string)) *Stream {
	return &Stream{redact: redact, put: put}
}

// Write takes the next piece. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.pending = append(s.pending, p...)
	if len(s.pending) < max(streamWindow, s.nextCutAt) {
		return len(p), nil
	}
	n, clean := s.cutPending()
	if n == 0 {
		s.nextCutAt = len(s.pending) + streamWindow
		return len(p), nil
	}
	s.nextCutAt = 0
	s.pending = append(s.pending[:0], s.pending[n:]...)
	s.put(clean)
	return len(p), nil
}

// Flush releases the rest.
func (s *Stream) Flush() {
	if len(s.pending) > 0 {
		s.put(s.redact(string(s.pending)))
	}
	s.pending = nil
}

// cutPending splits pending at a place that is not inside a secret, so both parts can be redacted separately.
// It returns the length of the first part, and that part redacted. The length is 0 if there is no such
// place yet. Each attempt goes back twice as far. From streamPatience bytes on, it splits anyway.
func (s *Stream) cutPending() (n int, clean string) {
	redacted := s.redact(string(s.pending))
	end := len(s.pending) - streamOverlap
	for stepBack := 512; stepBack < 512<<cutAttempts && end > 0; stepBack *= 2 {
		n = end
		if line := bytes.LastIndexByte(s.pending[:end], '\n') + 1; line > 0 {
			n = line
		}
		if redacted == string(s.pending) { // it contains no secret
			return n, redacted[:n]
		}
		if clean = s.redact(string(s.pending[:n])); clean+s.redact(string(s.pending[n:])) == redacted {
			return n, clean
		}
		end = n - stepBack
	}
	if len(s.pending) < streamPatience {
		return 0, ""
	}
	n = len(s.pending) - streamOverlap
	return n, s.redact(string(s.pending[:n]))
}
