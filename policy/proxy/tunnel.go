package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// tunnel copies between the client and the target. It ends when both have finished, one fails, or no data
// arrives for limits.idle. private permits private addresses.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, t reach.Target, private bool) {
	p.work.Add(1)
	defer p.work.Done()
	server, _, err := p.connect(r.Context(), t, private, p.tunnelVia)
	if err != nil {
		p.respond(w, r, dialFailureReply(t, err))
		return
	}
	defer server.Close()
	client, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	abort := func() {
		_ = client.Close()
		_ = server.Close()
	}
	defer context.AfterFunc(p.ctx, abort)()
	_ = client.SetDeadline(time.Time{})
	idle := p.newIdleTimer(abort)
	defer idle.stop()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	copyHalf := func(to net.Conn, from io.Reader) {
		if err := p.copyBounded(to, from, idle); err != nil {
			abort()
			return
		}
		_ = closeWrite(to)
	}
	var both sync.WaitGroup
	both.Go(func() { copyHalf(server, early.Reader) })
	both.Go(func() { copyHalf(client, server) })
	both.Wait()
}

// dialFailureReply returns the reply for a connection to t that failed or was refused.
func dialFailureReply(t reach.Target, err error) reply {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return newRefusalReply(refused.Request)
	}
	return connectFailureReply(t.String(), err)
}

var errTooManyBytes = errors.New("more bytes than the proxy carries")

// copyBounded copies up to limits.bytes, and restarts the idle timer whenever data comes.
func (p *Proxy) copyBounded(to io.Writer, from io.Reader, idle *idleTimer) error {
	_, err := io.Copy(to, p.watchedReader(from, idle))
	return err
}
