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

// requestsUpgrade reports whether a request asks for another protocol (RFC 9110, 7.8). It ignores TLS,
// which some clients always offer.
func requestsUpgrade(r *http.Request) bool {
	for _, protocols := range r.Header["Upgrade"] {
		for protocol := range strings.SplitSeq(protocols, ",") {
			if !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(protocol)), "TLS/") {
				return true
			}
		}
	}
	return false
}

// requestsWebSocket reports whether a request opens a WebSocket (RFC 6455, 4.1).
func requestsWebSocket(r *http.Request) bool {
	key, version, upgrade := r.Header["Sec-Websocket-Key"], r.Header["Sec-Websocket-Version"], r.Header["Upgrade"]
	if len(key) != 1 || len(version) != 1 || len(upgrade) != 1 {
		return false
	}
	if r.ProtoMajor != 1 || r.Method != http.MethodGet {
		return false
	}
	upgrades := strings.EqualFold(upgrade[0], "websocket") && slices.Contains(slices.Collect(connectionOptions(r.Header)), "Upgrade")
	return upgrades && version[0] == "13" && isWebSocketKey(key[0])
}

// isWebSocketKey reports whether a text is the key of a WebSocket: 16 bytes in base64.
func isWebSocketKey(text string) bool {
	number, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && len(number) == 16
}

// opensWebSocket reports whether an answer accepts the requested WebSocket (RFC 6455, 4.2.2). After any
// other answer with status 101, unsearched requests could follow.
func opensWebSocket(r *http.Request, response *http.Response) bool {
	if response.StatusCode != http.StatusSwitchingProtocols || !requestsWebSocket(r) {
		return false
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // the GUID of the RFC
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
	abort := sync.OnceFunc(func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer abort()
	defer context.AfterFunc(p.ctx, abort)()
	if writeWebSocketAnswer(client, p, response) != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer abort()
		_ = p.copyBounded(server, early.Reader, idle)
	})
	both.Go(func() {
		defer abort()
		_ = p.copyBounded(&frameForwarder{guard: p.guard, to: client}, server, idle)
	})
	both.Wait()
}

// writeWebSocketAnswer writes the answer that opens a WebSocket.
func writeWebSocketAnswer(client net.Conn, p *Proxy, response *http.Response) error {
	p.guard.CleanHeader(response.Header)
	h := make(http.Header)
	copyEndToEndHeaders(h, response.Header)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	head := http.Response{StatusCode: response.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	_ = client.SetDeadline(time.Time{})
	return head.Write(client)
}
