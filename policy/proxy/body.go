package proxy

import (
	"bytes"
	"context"
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
	// maxSearchedFirst is the longest body to search completely before the request is sent, in bytes.
	maxSearchedFirst = 64 << 10
	// lateSearchWait is how long the end of an answer is delayed until the rest of the body is searched.
	lateSearchWait = time.Second
)

// searchedBody is a request body that is searched for placeholders. Reading ends at the first one.
// After Close, the rest can still be searched.
type searchedBody struct {
	refuse func(*credential.Refusal) *Request // nil if the body is not searched
	found  atomic.Pointer[Request]
	closed context.Context // done after Close
	close  context.CancelFunc

	mu      sync.Mutex
	from    io.Reader
	started bool
	err     error // the error, or io.EOF, that ended reading
}

// searchBody returns the body of a request as one that is searched for placeholders. It searches a short
// body at once, so that no answer arrives before the result, and a longer one while it is sent. It returns
// a reply instead of a body if the request must not be sent.
func (p *Proxy) searchBody(r *http.Request, t reach.Target, idle *idleTimer) (*searchedBody, *reply) {
	body := &searchedBody{from: r.Body}
	body.closed, body.close = context.WithCancel(context.Background())
	if p.guard == nil || r.ContentLength == 0 {
		return body, nil
	}
	body.from = p.guard.SearchBody(r.Body, func() http.Header { return r.Trailer })
	body.refuse = func(refusal *credential.Refusal) *Request {
		refusal.Request = credential.DescribeRequest(r)
		refused := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: policy.CredentialUseRefusal(refusal)}
		_ = p.options.Observe(refused) // without a record the request is refused, too
		return &refused
	}
	if r.ContentLength < 0 || r.ContentLength > maxSearchedFirst || len(r.Header["Expect"]) > 0 {
		return body, nil
	}
	text, err := io.ReadAll(p.watchedReader(body, idle))
	if refused := body.refusalReply(); refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, &incompleteBodyReply
	}
	body.from, body.err = bytes.NewReader(text), nil
	return body, nil
}

// refusalReply returns the reply to a body with a placeholder, or nil if none was found.
func (body *searchedBody) refusalReply() *reply {
	found := body.found.Load()
	if found == nil {
		return nil
	}
	refused := newRefusalReply(*found)
	return &refused
}

// incompleteBodyReply answers a request with an incomplete body.
var incompleteBodyReply = reply{status: http.StatusBadRequest, errorText: "http_request_error", body: "The body of the request did not come whole.\n"}

func (body *searchedBody) Read(to []byte) (int, error) {
	if body.closed.Err() != nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return body.read(to)
}

// read reads the body and stores a refusal in found. Unlike Read, it also works after Close.
func (body *searchedBody) read(to []byte) (int, error) {
	body.mu.Lock()
	defer body.mu.Unlock()
	if body.err != nil {
		return 0, body.err
	}
	body.started = true
	n, err := body.from.Read(to)
	if refused, ok := errors.AsType[*credential.Refusal](err); ok {
		body.found.Store(body.refuse(refused))
	}
	body.err = err
	return n, err
}

func (body *searchedBody) Close() error {
	body.close()
	return nil
}

// searchRestAfterAnswer searches the part of the body that the host has not received if it answers early. A
// placeholder there aborts the exchange. Call end to end the exchange; it waits up to lateSearchWait for
// the search.
func (p *Proxy) searchRestAfterAnswer(body *searchedBody, control *http.ResponseController, abort func()) (end func()) {
	_ = control.EnableFullDuplex() // otherwise net/http reads the rest of the body before it answers
	if body.refuse == nil {
		return func() {}
	}
	searched := make(chan struct{})
	p.work.Go(func() {
		defer close(searched)
		<-body.closed.Done()
		body.searchRest(p.limits.bytes)
		if body.found.Load() != nil {
			abort()
		}
	})
	return func() {
		abort()
		select {
		case <-searched:
		case <-time.After(lateSearchWait):
			_ = control.SetReadDeadline(time.Now().Add(p.limits.idle)) // ends the search
		}
	}
}

// searchRest reads the rest of the body, up to most bytes, so that it is searched. Before the first read it
// does nothing. A placeholder is stored in found.
func (body *searchedBody) searchRest(most int64) {
	body.mu.Lock()
	started := body.started
	body.mu.Unlock()
	if started {
		_, _ = io.CopyN(io.Discard, readerFunc(body.read), most)
	}
}

type readerFunc func([]byte) (int, error)

func (read readerFunc) Read(to []byte) (int, error) { return read(to) }
