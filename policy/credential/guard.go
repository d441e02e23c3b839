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
	buffers      sync.Pool     // of *[]byte, for answers
	holdTime     time.Duration // how long CopyClean holds back the last bytes if no further ones arrive; 0 has no limit
}

// NewGuard makes the guard of a set. It returns nil for an empty set; a nil Guard has no credentials.
func NewGuard(set Set) *Guard {
	if len(set) == 0 {
		return nil
	}
	var placeholders, values []needle
	for i, c := range set {
		placeholders = append(placeholders, encodedForms(c.Placeholder, c.Placeholder, i)...)
		values = append(values, encodedForms(c.Value, c.Placeholder, i)...)
	}
	g := &Guard{set: set, placeholders: newMatcher(placeholders), values: newMatcher(values), holdTime: maxHoldTime}
	g.buffers.New = func() any {
		buffer := make([]byte, readSize+g.values.maxLength)
		return &buffer
	}
	return g
}

// NewHider returns a Guard that replaces non-empty texts, which belong to one server, by asterisks in its answers. It
// holds back the beginning of a possible text until the next bytes arrive: the server may not know the texts, and
// could find them by timing. Without texts it returns nil.
func NewHider(texts ...string) *Guard {
	var set Set
	for _, text := range texts {
		set = append(set, Credential{Value: text, Placeholder: strings.Repeat("*", len(text))})
	}
	g := NewGuard(set)
	if g != nil {
		g.holdTime = 0
	}
	return g
}

// readSize is how much of an answer is read at once.
const readSize = 64 << 10

// CleanHeader replaces values by placeholders in the header or trailer of an answer. It deletes a field
// whose name contains a value, in any case, because http.Header changes the case of names.
func (g *Guard) CleanHeader(h http.Header) {
	if g == nil {
		return
	}
	for name, values := range h {
		for i, value := range values {
			if clean := g.values.replaceAll(value); clean != value {
				values[i] = clean
			}
		}
		_, containsForm := g.values.credentialIn(name)
		containsValue := slices.ContainsFunc(g.set, func(c Credential) bool { return containsAnyCase(name, c.Value) })
		if containsForm || containsValue {
			delete(h, name)
		}
	}
}

// maxHoldTime is the holdTime for credentials. CopyClean holds back one byte less than the longest spelling of a
// value. Otherwise a server could guess a value letter by letter from the timing.
const maxHoldTime = 200 * time.Millisecond

// CopyClean copies an answer and replaces values by placeholders of the same length, so that lengths and
// offsets stay valid. It buffers at most 64 KiB and the longest spelling. A nil Guard replaces nothing.
func (g *Guard) CopyClean(to io.Writer, from io.Reader) error {
	if g == nil {
		_, err := io.Copy(to, from)
		return err
	}
	buffer := g.buffers.Get().(*[]byte)
	defer g.buffers.Put(buffer)
	copying := &answerCopy{guard: g, to: to, buffer: *buffer}
	defer copying.stopTimer()
	timer := time.AfterFunc(time.Hour, copying.forwardHeld)
	timer.Stop() // Reset starts it
	defer timer.Stop()
	for {
		n, err := from.Read(copying.buffer[copying.held:])
		isHolding, writeErr := copying.process(n, err == io.EOF)
		if writeErr != nil {
			return writeErr
		}
		if isHolding && g.holdTime > 0 {
			timer.Reset(g.holdTime)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ReplaceValues replaces values in text in place. It returns the number of finished bytes; the caller puts
// the others before the next text. isEnd means that no text follows.
func (g *Guard) ReplaceValues(text []byte, isEnd bool) (ready int) {
	finished := g.values.replace(text, isEnd)
	if isEnd {
		return finished
	}
	return min(finished, max(0, len(text)-g.values.maxLength+1))
}

// answerCopy copies an answer and replaces values.
type answerCopy struct {
	guard *Guard
	to    io.Writer

	mu        sync.Mutex
	buffer    []byte // begins with the held back bytes
	held      int    // number of held back bytes
	forwarded int    // number of held back bytes that forwardHeld has already written
	writeErr  error  // of forwardHeld
	stopped   bool
}

// process searches and forwards the next n bytes of the buffer. isEnd means that no bytes follow.
// isHolding reports whether bytes are held back.
func (c *answerCopy) process(n int, isEnd bool) (isHolding bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writeErr != nil {
		return false, c.writeErr
	}
	all := c.buffer[:c.held+n]
	ready := c.guard.ReplaceValues(all, isEnd)
	if ready > c.forwarded {
		if _, err := c.to.Write(all[c.forwarded:ready]); err != nil {
			return false, err
		}
	}
	c.forwarded = max(c.forwarded-ready, 0)
	c.held = copy(c.buffer, all[ready:])
	return c.held > c.forwarded, nil
}

// forwardHeld forwards the held back bytes.
func (c *answerCopy) forwardHeld() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.writeErr != nil || c.held == c.forwarded {
		return
	}
	_, c.writeErr = c.to.Write(c.buffer[c.forwarded:c.held])
	c.forwarded = c.held
}

// stopTimer makes forwardHeld do nothing from now on, even if its timer has fired already.
func (c *answerCopy) stopTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// SearchBody returns a reader of a request's body that fails with a *Refusal at a placeholder in the body
// or the trailer. trailer is called at the end of the body.
func (g *Guard) SearchBody(body io.Reader, trailer func() http.Header) io.Reader {
	return &guardedBody{guard: g, body: body, trailer: trailer}
}

// guardedBody is the reader that SearchBody returns.
type guardedBody struct {
	guard    *Guard
	body     io.Reader
	trailer  func() http.Header
	sentTail []byte // sent bytes that may begin a placeholder
}

// Read reads the body and searches it for placeholders, also for one that began in earlier reads.
func (b *guardedBody) Read(to []byte) (int, error) {
	n, err := b.body.Read(to)
	text := to[:n]
	if len(b.sentTail) > 0 {
		text = append(b.sentTail, text...)
	}
	at, found := b.guard.placeholders.find(text, false)
	if found != nil {
		return 0, b.guard.refuseMisplaced(found.credential, "the body")
	}
	b.sentTail = append([]byte(nil), text[at:]...)
	if err == io.EOF {
		if refusal := b.guard.findInHeader(b.trailer(), "a trailer"); refusal != nil {
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
	if g.findInText(refusal.Request, "") != nil {
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

// WithheldNames returns the credentials for a target that are withheld from the asking commands.
func (s Set) WithheldNames(t reach.Target) []string { return s.credentialNames(t, true) }

// Names returns the credentials for a target that are available to the asking commands.
func (s Set) Names(t reach.Target) []string { return s.credentialNames(t, false) }

// credentialNames returns the names of the credentials for a target that are withheld from the asking
// commands, or available to them.
func (s Set) credentialNames(t reach.Target, withheld bool) (names []string) {
	for _, c := range s {
		if c.Denied == withheld && c.isForTarget(t) {
			names = append(names, c.Name)
		}
	}
	return names
}
