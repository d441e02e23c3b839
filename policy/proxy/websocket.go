package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// upgrades says whether a request asks for another protocol (RFC 9110, 7.8) than TLS, which
// is spoken already: some clients offer that always, and it is left out.
func upgrades(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Upgrade"], func(protocols string) bool {
		return slices.ContainsFunc(strings.Split(protocols, ","), func(one string) bool {
			return !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(one)), "TLS/")
		})
	})
}

// toWebSocket says whether a request opens a WebSocket (RFC 6455, 4.1).
func toWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Method == http.MethodGet && len(r.Header["Upgrade"]) == 1 && strings.EqualFold(r.Header["Upgrade"][0], "websocket") &&
		slices.ContainsFunc(r.Header["Connection"], func(listed string) bool {
			return slices.ContainsFunc(strings.Split(listed, ","), func(one string) bool { return strings.EqualFold(strings.TrimSpace(one), "upgrade") })
		})
}

// joinWebSocket joins who asked with the target. What the target sends is searched, which
// is in plain text there. What it gets is masked, and is not.
func (p *Proxy) joinWebSocket(control *http.ResponseController, response *http.Response, idle *time.Timer) {
	server, ok := response.Body.(io.ReadWriteCloser)
	if !ok || !strings.EqualFold(response.Header.Get("Upgrade"), "websocket") || len(response.Header["Sec-Websocket-Extensions"]) > 0 {
		panic(http.ErrAbortHandler)
	}
	client, early, err := control.Hijack()
	if err != nil {
		return
	}
	breakOff := sync.OnceFunc(func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer breakOff()
	defer context.AfterFunc(p.ctx, breakOff)()
	if writeSwitch(client, p, response) != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer breakOff()
		_ = p.carry(server, early.Reader, idle)
	})
	both.Go(func() {
		defer breakOff()
		_ = p.carry(&frames{guard: p.guard, to: client}, server, idle)
	})
	both.Wait()
}

// writeSwitch writes the answer that opens a WebSocket.
func writeSwitch(client net.Conn, p *Proxy, response *http.Response) error {
	p.guard.Header(response.Header)
	h := make(http.Header)
	keepEndToEnd(h, response.Header)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	head := http.Response{StatusCode: response.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	_ = client.SetDeadline(time.Time{})
	return head.Write(client)
}
