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

// Guard holds requests to what the credentials of a set are for, and keeps their values
// from those who ask. Several goroutines may use it. Nil guards nothing.
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
		placeholders = append(placeholders, spellings(c.Placeholder, c.Placeholder, i)...)
		values = append(values, spellings(c.Value, c.Placeholder, i)...)
	}
	g := &Guard{set: set, placeholders: newMatcher(placeholders), values: newMatcher(values)}
	g.buffers.New = func() any {
		buffer := make([]byte, chunk+g.values.longest)
		return &buffer
	}
	return g
}

// chunk is how much of an answer is read at once.
const chunk = 64 << 10

// Header puts placeholders where values stand in the header or the trailer of an answer.
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
		if _, ok := g.values.sees(name); ok || slices.ContainsFunc(g.set, func(c Credential) bool { return folded(name, c.Value) }) {
			delete(h, name)
		}
	}
}

// What is held back of an answer while more is to come says nothing of what was looked for:
// it is as many bytes as the longest spelling of a value has but one, whatever they are. Who
// writes an answer without knowing the value would else find it letter by letter, from how
// its bytes arrive. When nothing follows for a while all of it goes on, so that whoever waits
// for a message gets it.
const patience = 200 * time.Millisecond

// Copy copies an answer with placeholders where values stand. They are as long, so that
// lengths and offsets stay right. It holds no more of the answer than fits one buffer.
func (g *Guard) Copy(to io.Writer, from io.Reader) error { return g.copy(to, from, patience) }

// copy lets what is held back go after so long; never, where that is 0.
func (g *Guard) copy(to io.Writer, from io.Reader, patience time.Duration) error {
	buffer := g.buffers.Get().(*[]byte)
	defer g.buffers.Put(buffer)
	s := &searched{guard: g, to: to, buffer: *buffer}
	defer s.end()
	late := time.AfterFunc(time.Hour, s.letGo)
	late.Stop()
	defer late.Stop()
	for {
		n, err := from.Read(s.buffer[s.held:])
		if waits, failed := s.more(n, err == io.EOF); failed != nil {
			return failed
		} else if waits && patience > 0 {
			late.Reset(patience)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Replace puts placeholders where values stand in a text, in its place: whole says that no
// more of it comes. What is before ready can be given on; what is not belongs to the
// beginning of the next text.
func (g *Guard) Replace(text []byte, whole bool) (ready int) {
	clean := g.values.replace(text, whole)
	if whole {
		return clean
	}
	return min(clean, max(0, len(text)-g.values.longest+1))
}

// searched is an answer on its way.
type searched struct {
	guard *Guard
	to    io.Writer

	mu     sync.Mutex
	buffer []byte // begins with what is held back
	held   int
	gone   int   // of what is held, what was let through already
	failed error // of letGo
	done   bool
}

// more takes the next bytes of the buffer. It tells whether some wait.
func (s *searched) more(n int, whole bool) (waits bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return false, s.failed
	}
	all := s.buffer[:s.held+n]
	ready := s.guard.Replace(all, whole)
	if ready > s.gone {
		if _, err := s.to.Write(all[s.gone:ready]); err != nil {
			return false, err
		}
	}
	s.gone = max(s.gone-ready, 0)
	s.held = copy(s.buffer, all[ready:])
	return s.held > s.gone, nil
}

// letGo gives on what is held back.
func (s *searched) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || s.failed != nil || s.held == s.gone {
		return
	}
	_, s.failed = s.to.Write(s.buffer[s.gone:s.held])
	s.gone = s.held
}

// end keeps letGo from writing where nobody waits any more.
func (s *searched) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
}

// Body is what a request sends, up to where a placeholder stands in it: there it ends with
// a *Refusal. trailer gives what follows the body, once that is read.
func (g *Guard) Body(body io.Reader, trailer func() http.Header) io.Reader {
	return &sent{guard: g, body: body, trailer: trailer}
}

type sent struct {
	guard   *Guard
	body    io.Reader
	trailer func() http.Header
	before  []byte // what may be the beginning of a placeholder, which was sent already
}

func (s *sent) Read(to []byte) (int, error) {
	n, err := s.body.Read(to)
	text := to[:n]
	if len(s.before) > 0 {
		text = append(s.before, text...)
	}
	at, found := s.guard.placeholders.find(text, false)
	if found != nil {
		return 0, s.guard.misplaced(found.of, "the body")
	}
	s.before = append([]byte(nil), text[at:]...)
	if err == io.EOF {
		if refusal := s.guard.inHeader(s.trailer(), "a trailer"); refusal != nil {
			return 0, refusal
		}
	}
	return n, err
}

// Refusal is that a request is not to go out as it stands. It is an error.
type Refusal struct {
	Names []string // of the credentials that it is about
	// Reason is a sentence on the kind of misuse, which has no placeholder, no value and
	// nothing else of the request, so that there are not as many reasons as requests.
	Reason string
	// Request is the request of which it was seen: method and path, and what of it is meant.
	Request string
	// Never is that nothing the job could say lets it through.
	Never bool
}

// about notes of which request a refusal is, unless a placeholder stands in what would be
// noted; nil stays so.
func (g *Guard) about(r *http.Request, refusal *Refusal) *Refusal {
	if refusal == nil {
		return nil
	}
	refusal.Request = Shown(r) + refusal.Request
	if g.inText(refusal.Request, "") != nil {
		refusal.Request = ""
	}
	return refusal
}

// Shown is method and path of a request for people.
func Shown(r *http.Request) string { return strings.TrimSpace(r.Method + " " + r.URL.EscapedPath()) }

func (r *Refusal) Error() string { return r.Reason }

// Rule names what is in the way, as a job writes it.
func (r *Refusal) Rule() string { return Rule(r.Names...) }

// Rule names credentials as rules of decisions do.
func Rule(names ...string) string { return "policy.secrets: " + strings.Join(names, ", ") }

// Private says whether a credential that commands may have for a target lets it have
// private addresses.
func (s Set) Private(t reach.Target) bool {
	return slices.ContainsFunc(s, func(c Credential) bool { return c.Private && !c.Withheld && c.isFor(t) })
}

// WithheldFor are the names of the credentials that are for a target, and not for the
// commands who ask.
func (s Set) WithheldFor(t reach.Target) []string { return s.names(t, true) }

// Names are those of the credentials that commands may have for a target.
func (s Set) Names(t reach.Target) []string { return s.names(t, false) }

func (s Set) names(t reach.Target, withheld bool) (names []string) {
	for _, c := range s {
		if c.Withheld == withheld && c.isFor(t) {
			names = append(names, c.Name)
		}
	}
	return names
}
