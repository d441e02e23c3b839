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
	// shortBody is the longest body to search completely before the request is sent, in bytes.
	shortBody = 64 << 10
	// lateBody is how long the end of an answer is delayed until the rest of the body is searched.
	lateBody = time.Second
)

// searchedBody is a request body that is searched for placeholders. Reading ends at the first one.
// After Close, the rest can still be searched.
type searchedBody struct {
	refuse func(*credential.Refusal) *Request // nil if the body is not searched
	found  atomic.Pointer[Request]
	close  sync.Once
	closed chan struct{}

	mu      sync.Mutex
	from    io.Reader
	started bool
	err     error // the error, or io.EOF, that ended reading
}

// search prepares the search of a request body. It searches a short body at once, so no answer
// arrives before the result, and a longer one while it is sent. It returns a reply instead of
// sending a refused request.
func (p *Proxy) search(r *http.Request, t reach.Target, idle *idleTimer) (*searchedBody, *reply) {
	b := &searchedBody{from: r.Body, closed: make(chan struct{})}
	if p.guard == nil || r.ContentLength == 0 {
		return b, nil
	}
	b.from = p.guard.Body(r.Body, func() http.Header { return r.Trailer })
	b.refuse = func(refused *credential.Refusal) *Request {
		refused.Request = credential.DescribeRequest(r)
		asked := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: policy.NotForCredential(refused)}
		_ = p.options.Observe(asked) // without a record the request is refused, too
		return &asked
	}
	if r.ContentLength < 0 || r.ContentLength > shortBody || len(r.Header["Expect"]) > 0 {
		return b, nil
	}
	text, err := io.ReadAll(p.watch(b, idle))
	if found := b.found.Load(); found != nil {
		answer := refusal(*found)
		return nil, &answer
	}
	if err != nil {
		return nil, &incompleteBodyReply
	}
	b.from, b.err = bytes.NewReader(text), nil
	return b, nil
}

// incompleteBodyReply answers a request with an incomplete body.
var incompleteBodyReply = reply{status: http.StatusBadRequest, errorText: "http_request_error", body: "The body of the request did not come whole.\n"}

func (b *searchedBody) Read(to []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, http.ErrBodyReadAfterClose
	default:
		return b.read(to)
	}
}

// read is Read, but also works after Close.
func (b *searchedBody) read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.started = true
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

// searchRest searches the rest of a body if the host answers early, and aborts the exchange at a
// placeholder. The host has not received that rest. The returned function ends the exchange and
// waits up to lateBody for the search.
func (p *Proxy) searchRest(b *searchedBody, control *http.ResponseController, breakOff func()) (end func()) {
	_ = control.EnableFullDuplex() // otherwise net/http reads the rest of the body before it answers
	if b.refuse == nil {
		return func() {}
	}
	searched := make(chan struct{})
	p.work.Go(func() {
		defer close(searched)
		<-b.closed
		b.drain(p.limits.bytes)
		if b.found.Load() != nil {
			breakOff()
		}
	})
	return func() {
		breakOff()
		timer := time.NewTimer(lateBody)
		defer timer.Stop()
		select {
		case <-searched:
		case <-timer.C:
			_ = control.SetReadDeadline(time.Now().Add(p.limits.idle)) // ends the search
		}
	}
}

// drain searches the rest of the body, up to most bytes, if reading has begun. read stores the result.
func (b *searchedBody) drain(most int64) {
	b.mu.Lock()
	started := b.started
	b.mu.Unlock()
	if started {
		_, _ = io.CopyN(io.Discard, readerFunc(b.read), most)
	}
}

type readerFunc func([]byte) (int, error)

func (read readerFunc) Read(to []byte) (int, error) { return read(to) }
