package credential

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Guard limits requests to the permitted use of credentials and removes their values from answers.
// It is safe for concurrent use. A nil Guard does nothing.
type Guard struct {
	set          Set
	placeholders *matcher
	values       *matcher
	buffers      sync.Pool // of *[]byte, for answers
}

// NewGuard makes the guard of a set.
func NewGuard(set Set) *Guard {
	if len(set) == 0 {
		return nil
	}
	var placeholders, values []needle
	for i, c := range set {
		placeholders = append(placeholders, encodedForms(c.Placeholder, c.Placeholder, i)...)
		values = append(values, encodedForms(c.Value, c.Placeholder, i)...)
	}
	g := &Guard{set: set, placeholders: newMatcher(placeholders), values: newMatcher(values)}
	g.buffers.New = func() any {
		buffer := make([]byte, readSize+g.values.longest)
		return &buffer
	}
	return g
}

// readSize is how much of an answer is read at once.
const readSize = 64 << 10

// Header replaces values by placeholders in the header or trailer of an answer. It deletes a field
// whose name contains a value. Names are compared in any case, because http.Header changes their case.
func (g *Guard) Header(h http.Header) {
	if g == nil {
		return
	}
	for name, values := range h {
		for i, value := range values {
			if clean := g.values.replaceAll(value); clean != value {
				values[i] = clean
			}
		}
		if _, ok := g.values.credentialIn(name); ok || slices.ContainsFunc(g.set, func(c Credential) bool { return containsAnyCase(name, c.Value) }) {
			delete(h, name)
		}
	}
}

// holdTime is how long Copy holds back the last bytes if no further bytes arrive. Copy always holds
// back as many bytes as the longest spelling of a value minus one. Otherwise a server could guess a
// value letter by letter from the timing.
const holdTime = 200 * time.Millisecond

// Copy copies an answer and replaces values by placeholders of the same length, so lengths and
// offsets stay valid. It buffers at most 64 KiB and the longest spelling.
func (g *Guard) Copy(to io.Writer, from io.Reader) error { return g.copy(to, from, holdTime) }

// copy is Copy. It forwards held back bytes after patience if no others arrive; 0 means never.
func (g *Guard) copy(to io.Writer, from io.Reader, patience time.Duration) error {
	buffer := g.buffers.Get().(*[]byte)
	defer g.buffers.Put(buffer)
	s := &answerCopy{guard: g, to: to, buffer: *buffer}
	defer s.stopTimer()
	timer := time.AfterFunc(time.Hour, s.forwardHeld)
	timer.Stop() // Reset starts it
	defer timer.Stop()
	for {
		n, err := from.Read(s.buffer[s.held:])
		if waits, failed := s.process(n, err == io.EOF); failed != nil {
			return failed
		} else if waits && patience > 0 {
			timer.Reset(patience)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Replace replaces values in text in place and returns the number of finished bytes. The caller puts
// the rest before the next text. whole means that no text follows.
func (g *Guard) Replace(text []byte, whole bool) (ready int) {
	clean := g.values.replace(text, whole)
	if whole {
		return clean
	}
	return min(clean, max(0, len(text)-g.values.longest+1))
}

// answerCopy copies an answer and replaces values.
type answerCopy struct {
	guard *Guard
	to    io.Writer

	mu        sync.Mutex
	buffer    []byte // begins with the held back bytes
	held      int    // number of held back bytes
	forwarded int    // number of held back bytes that forwardHeld has already written
	failed    error  // of forwardHeld
	done      bool
}

// process searches and forwards the next n bytes of the buffer. whole means that no bytes follow.
// waits reports whether bytes are held back.
func (s *answerCopy) process(n int, whole bool) (waits bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return false, s.failed
	}
	all := s.buffer[:s.held+n]
	ready := s.guard.Replace(all, whole)
	if ready > s.forwarded {
		if _, err := s.to.Write(all[s.forwarded:ready]); err != nil {
			return false, err
		}
	}
	s.forwarded = max(s.forwarded-ready, 0)
	s.held = copy(s.buffer, all[ready:])
	return s.held > s.forwarded, nil
}

// forwardHeld forwards the held back bytes.
func (s *answerCopy) forwardHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || s.failed != nil || s.held == s.forwarded {
		return
	}
	_, s.failed = s.to.Write(s.buffer[s.forwarded:s.held])
	s.forwarded = s.held
}

// stopTimer makes forwardHeld do nothing: its timer may already have fired.
func (s *answerCopy) stopTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
}

// Body returns the body of a request. Reading fails with a *Refusal at a placeholder in the body or
// the trailer. trailer is called at the end of the body.
func (g *Guard) Body(body io.Reader, trailer func() http.Header) io.Reader {
	return &guardedBody{guard: g, body: body, trailer: trailer}
}

// guardedBody is the reader of Body.
type guardedBody struct {
	guard    *Guard
	body     io.Reader
	trailer  func() http.Header
	sentTail []byte // sent bytes that may begin a placeholder
}

// Read reads the body and searches it for placeholders, also for one that began in earlier reads.
func (s *guardedBody) Read(to []byte) (int, error) {
	n, err := s.body.Read(to)
	text := to[:n]
	if len(s.sentTail) > 0 {
		text = append(s.sentTail, text...)
	}
	at, found := s.guard.placeholders.find(text, false)
	if found != nil {
		return 0, s.guard.misplaced(found.credential, "the body")
	}
	s.sentTail = append([]byte(nil), text[at:]...)
	if err == io.EOF {
		if refusal := s.guard.inHeader(s.trailer(), "a trailer"); refusal != nil {
			return 0, refusal
		}
	}
	return n, err
}

// Refusal is the error for a request with a misused credential.
type Refusal struct {
	Names []string // of the misused credentials
	// Reason describes the kind of misuse in a sentence. It contains no part of the request, so
	// equal misuses have equal reasons.
	Reason string
	// Request is the refused request: method, path and the part in question.
	Request string
	// NoRemedy marks a refusal without a remedy in the job.
	NoRemedy bool
}

// withRequest adds a description of the request to a refusal, unless the description contains a
// placeholder. It returns nil for nil.
func (g *Guard) withRequest(r *http.Request, refusal *Refusal) *Refusal {
	if refusal == nil {
		return nil
	}
	refusal.Request = DescribeRequest(r) + refusal.Request
	if g.inText(refusal.Request, "") != nil {
		refusal.Request = ""
	}
	return refusal
}

// DescribeRequest returns method and path of a request for people.
func DescribeRequest(r *http.Request) string {
	return strings.TrimSpace(r.Method + " " + r.URL.EscapedPath())
}

func (r *Refusal) Error() string { return r.Reason }

// Rule names the credentials of the refusal like a job does.
func (r *Refusal) Rule() string { return Rule(r.Names...) }

// Rule names credentials as rules of decisions do.
func Rule(names ...string) string { return "policy.secrets: " + strings.Join(names, ", ") }

// Private reports whether an available credential permits private addresses for a target.
func (s Set) Private(t reach.Target) bool {
	return slices.ContainsFunc(s, func(c Credential) bool { return c.Private && !c.Denied && c.isForTarget(t) })
}

// WithheldFor returns the credentials for a target that are withheld from the asking commands.
func (s Set) WithheldFor(t reach.Target) []string { return s.names(t, true) }

// Names returns the credentials for a target that are available to the asking commands.
func (s Set) Names(t reach.Target) []string { return s.names(t, false) }

func (s Set) names(t reach.Target, withheld bool) (names []string) {
	for _, c := range s {
		if c.Denied == withheld && c.isForTarget(t) {
			names = append(names, c.Name)
		}
	}
	return names
}
