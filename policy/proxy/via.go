package proxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/secrets"
)

// viaError is that the proxy which a target is reached by does not lead to it. It wraps
// nothing: what is wrong with that proxy is not wrong with the target, and what it says
// is not for commands.
type viaError struct {
	why      string // what it does, after its subject
	protocol bool   // what it says is no HTTP
	timeout  bool
}

func (e *viaError) Error() string { return "the proxy of this machine " + e.why }

func viaRefused(status int) *viaError {
	if status == http.StatusProxyAuthRequired {
		return &viaError{why: "wants a user and a password other than it is given (status 407)"}
	}
	return &viaError{why: fmt.Sprintf("answers with the status %d", status)}
}

// via is the proxy that a target is reached by; nil for none.
func (p *Proxy) via(t reach.Target) *url.URL {
	if p.options.Via == nil {
		return nil
	}
	return p.options.Via(t)
}

// leastAlone is how long a password, or a user without one, is to be looked for by itself:
// anything shorter may be a word that a host has in what it serves.
const leastAlone = 16

// hider takes user and password of a proxy out of what comes by it; nil where it has none.
// An answer that the proxy gives by itself may show the header that has them. A short pair
// is looked for in that header alone: by itself it would be found in any download.
func (p *Proxy) hider(proxy *url.URL) *credential.Hider {
	if proxy == nil || proxy.User == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := proxy.User.String()
	if made := p.hiders[key]; made != nil {
		return made
	}
	password, _ := proxy.User.Password()
	pair := proxy.User.Username() + ":" + password
	encoded := base64.RawStdEncoding.EncodeToString([]byte(pair))
	texts := []string{pair, encoded}
	if len(pair) < secrets.MinLength {
		texts = []string{"Basic " + encoded}
	}
	if alone := cmp.Or(password, proxy.User.Username()); len(alone) >= leastAlone {
		texts = append(texts, alone)
	}
	p.hiders[key] = credential.NewHider(texts...)
	return p.hiders[key]
}

// viaAddress is where a proxy listens.
func viaAddress(proxy *url.URL) string {
	port := proxy.Port()
	switch {
	case port != "":
	case proxy.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// dialVia connects to a proxy. Its address is the operator's word, and not looked at.
func (p *Proxy) dialVia(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", viaAddress(proxy))
	if err != nil {
		return nil, orLate(ctx, &viaError{why: "can't be reached"})
	}
	if proxy.Scheme != "https" {
		return conn, nil
	}
	secure := tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), RootCAs: p.options.ViaRoots, NextProtos: []string{"http/1.1"}})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, orLate(ctx, &viaError{why: "can't be spoken to by TLS", protocol: true})
	}
	return secure, nil
}

// orLate is an error, or that the time is over.
func orLate(ctx context.Context, err *viaError) *viaError {
	if ctx.Err() != nil {
		return &viaError{why: "does not answer in time", timeout: true}
	}
	return err
}

// tunnelVia has a proxy connect to the target (RFC 9110, 9.3.6).
func (p *Proxy) tunnelVia(ctx context.Context, proxy *url.URL, t reach.Target) (net.Conn, error) {
	conn, err := p.dialVia(ctx, proxy)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, refused := askForTunnel(conn, proxy, t)
	if inTime := stop(); refused == nil && inTime {
		return tunnel, nil
	}
	_ = conn.Close()
	return nil, orLate(ctx, refused)
}

// garbled is the error of a proxy that does not speak HTTP, or breaks off.
func garbled() *viaError {
	return &viaError{why: "gives no answer that is one of HTTP", protocol: true}
}

func askForTunnel(conn net.Conn, proxy *url.URL, t reach.Target) (net.Conn, *viaError) {
	request := fmt.Sprintf("CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n", t)
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return nil, garbled()
	}
	head := &io.LimitedReader{R: conn, N: longestHeader}
	from := bufio.NewReader(head)
	const mostInterim = 5
	for range mostInterim {
		answer, err := http.ReadResponse(from, &http.Request{Method: http.MethodConnect})
		switch {
		case err != nil:
			return nil, garbled()
		case answer.StatusCode < 200 && answer.StatusCode != http.StatusSwitchingProtocols:
			continue
		case answer.StatusCode < 200 || answer.StatusCode > 299:
			return nil, viaRefused(answer.StatusCode)
		}
		head.N = math.MaxInt64
		return &tunnelled{conn, from}, nil
	}
	return nil, garbled()
}

// tunnelled is a connection of which something was read already.
type tunnelled struct {
	net.Conn
	from *bufio.Reader
}

func (t *tunnelled) Read(to []byte) (int, error) { return t.from.Read(to) }

// CloseWrite says that nothing more comes from this side.
func (t *tunnelled) CloseWrite() error { return closeWrite(t.Conn) }
