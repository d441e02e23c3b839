package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

const (
	// shortBody is up to which length a body is searched before its request goes out.
	shortBody = 64 << 10
	// lateBody is how long an answer's end waits for the rest of a body to be searched.
	lateBody = time.Second
)

// searchedBody is the body of a request, which ends where a placeholder stands in it. Who
// sends the request closes it when nothing more is wanted; the rest can be searched then.
type searchedBody struct {
	refuse func(*credential.Refusal) *Request // nil where nothing is searched
	found  atomic.Pointer[Request]
	close  sync.Once
	closed chan struct{}

	mu    sync.Mutex
	from  io.Reader
	begun bool
	err   error // that ended it
}

// search looks for placeholders in the body of a request: in a short one at once, so that
// no answer comes before all of it is searched, in another as it goes out. It gives what
// to tell where the request is not to go out.
func (p *Proxy) search(r *http.Request, t reach.Target, idle *standstill) (*searchedBody, *reply) {
	b := &searchedBody{from: r.Body, closed: make(chan struct{})}
	if p.guard == nil || r.ContentLength == 0 {
		return b, nil
	}
	b.from = p.guard.Body(r.Body, func() http.Header { return r.Trailer })
	b.refuse = func(refused *credential.Refusal) *Request {
		refused.Request = credential.Shown(r)
		asked := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: policy.NotForCredential(refused)}
		_ = p.options.Observe(asked) // it is refused in any case
		return &asked
	}
	if r.ContentLength < 0 || r.ContentLength > shortBody || len(r.Header["Expect"]) > 0 {
		return b, nil
	}
	text, err := io.ReadAll(p.watch(b, idle))
	if found := b.found.Load(); found != nil {
		told := refusal(*found)
		return nil, &told
	}
	if err != nil {
		return nil, &brokenOff
	}
	b.from, b.err = bytes.NewReader(text), nil
	return b, nil
}

// brokenOff is the answer to a request of whose body a part is missing.
var brokenOff = reply{status: http.StatusBadRequest, error: "http_request_error", body: "The body of the request did not come whole.\n"}

func (b *searchedBody) Read(to []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, http.ErrBodyReadAfterClose
	default:
		return b.read(to)
	}
}

func (b *searchedBody) read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.begun = true
	n, err := b.from.Read(to)
	if refused, ok := errors.AsType[*credential.Refusal](err); ok {
		b.found.Store(b.refuse(refused))
	}
	b.err = err
	return n, err
}

func (b *searchedBody) Close() error {
	b.close.Do(func() { close(b.closed) })
	return nil
}

// goOn searches what is left of a body where its host answers before it is through, and
// breaks the exchange off when a placeholder is there. Of what the host did not begin to
// take nothing was sent. The returned function ends the exchange, and waits for a while
// until all is searched.
func (p *Proxy) goOn(b *searchedBody, control *http.ResponseController, breakOff func()) (end func()) {
	_ = control.EnableFullDuplex() // else the library takes what is left of the body before it answers
	if b.refuse == nil {
		return func() {}
	}
	searched := make(chan struct{})
	p.work.Go(func() {
		defer close(searched)
		<-b.closed
		b.drain(p.limits.Bytes)
		if b.found.Load() != nil {
			breakOff()
		}
	})
	return func() {
		breakOff()
		late := time.NewTimer(lateBody)
		defer late.Stop()
		select {
		case <-searched:
		case <-late.C:
			_ = control.SetReadDeadline(time.Now().Add(p.limits.Idle)) // ends what still reads
		}
	}
}

// drain reads what is left, as far as that is bounded.
func (b *searchedBody) drain(most int64) {
	b.mu.Lock()
	begun := b.begun
	b.mu.Unlock()
	if begun {
		_, _ = io.CopyN(io.Discard, readerFunc(b.read), most) // how it ends is kept
	}
}

type readerFunc func([]byte) (int, error)

func (read readerFunc) Read(to []byte) (int, error) { return read(to) }
