package proxy

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// asksUpgrade reports whether a request asks for another protocol (RFC 9110, 7.8). It ignores TLS,
// which some clients always offer.
func asksUpgrade(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Upgrade"], func(protocols string) bool {
		return slices.ContainsFunc(strings.Split(protocols, ","), func(one string) bool {
			return !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(one)), "TLS/")
		})
	})
}

// toWebSocket reports whether a request opens a WebSocket (RFC 6455, 4.1).
func toWebSocket(r *http.Request) bool {
	if key, version := r.Header["Sec-Websocket-Key"], r.Header["Sec-Websocket-Version"]; len(key) != 1 || len(version) != 1 || version[0] != "13" || !isKey(key[0]) {
		return false
	}
	return r.ProtoMajor == 1 && r.Method == http.MethodGet && len(r.Header["Upgrade"]) == 1 && strings.EqualFold(r.Header["Upgrade"][0], "websocket") &&
		slices.Contains(slices.Collect(connectionOptions(r.Header)), "Upgrade")
}

// isKey reports whether a text is the key of a WebSocket: 16 bytes in base64.
func isKey(text string) bool {
	number, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && len(number) == 16
}

// opensWebSocket reports whether an answer accepts the requested WebSocket (RFC 6455, 4.2.2). After any
// other answer with status 101, unsearched requests could follow.
func opensWebSocket(r *http.Request, response *http.Response) bool {
	if response.StatusCode != http.StatusSwitchingProtocols || !toWebSocket(r) {
		return false
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	accept := response.Header["Sec-Websocket-Accept"]
	return len(accept) == 1 && accept[0] == base64.StdEncoding.EncodeToString(sum[:]) &&
		strings.EqualFold(response.Header.Get("Upgrade"), "websocket") && len(response.Header["Sec-Websocket-Extensions"]) == 0
}

// joinWebSocket copies between client and target. It searches the target's frames. The client's
// frames are masked and stay unsearched.
func (p *Proxy) joinWebSocket(control *http.ResponseController, response *http.Response, idle *idleTimer) {
	server, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
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
