package proxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
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

// viaError reports a failure of the machine's proxy, through which the target is reached. It wraps no
// error: the target is not at fault, and commands must not see the proxy's answer.
type viaError struct {
	why      string // the predicate of a sentence about the proxy
	protocol bool   // the proxy violates its protocol
	timeout  bool
}

func (e *viaError) Error() string { return "the proxy of this machine " + e.why }

// viaRefused returns the error for a proxy that answers with this status.
func viaRefused(status int) *viaError {
	if status == http.StatusProxyAuthRequired {
		return &viaError{why: "wants a user and a password other than it is given (status 407)"}
	}
	return &viaError{why: fmt.Sprintf("answers with the status %d", status)}
}

// proxyFor returns the proxy for a target, or nil.
func (p *Proxy) proxyFor(t reach.Target) *url.URL {
	if p.options.Via == nil {
		return nil
	}
	return p.options.Via(t)
}

// minSecretLength is the shortest password to search for without its user, in bytes. It also applies
// to a user without a password. A shorter one may be an ordinary word of an answer.
const minSecretLength = 16

// hiderFor returns a Guard that hides user and password of a proxy in answers, or nil if it has none. The proxy's own
// answers may repeat the header with both. A short pair is only hidden as part of that header, because
// any download may contain it.
func (p *Proxy) hiderFor(proxy *url.URL) *credential.Guard {
	if proxy == nil || proxy.User == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := proxy.User.String()
	if cached := p.hiders[key]; cached != nil {
		return cached
	}
	password, _ := proxy.User.Password()
	pair := proxy.User.Username() + ":" + password
	encoded := base64.RawStdEncoding.EncodeToString([]byte(pair))
	texts := []string{pair, encoded}
	if len(pair) < secrets.MinLength {
		texts = []string{"Basic " + encoded}
	}
	if alone := cmp.Or(password, proxy.User.Username()); len(alone) >= minSecretLength {
		texts = append(texts, alone)
	}
	p.hiders[key] = credential.NewHider(texts...)
	return p.hiders[key]
}

// viaAddress returns host and port of a proxy.
func viaAddress(proxy *url.URL) string {
	usualPort := "80"
	if proxy.Scheme == "https" {
		usualPort = "443"
	}
	return net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), usualPort))
}

// viaDialer makes a connection to or through a proxy.
type viaDialer func(ctx context.Context, proxy *url.URL, t reach.Target) (net.Conn, error)

// dialVia connects to a proxy. The operator configured its address, so it is not checked.
func (p *Proxy) dialVia(ctx context.Context, proxy *url.URL, _ reach.Target) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", viaAddress(proxy))
	if err != nil {
		return nil, timeoutOr(ctx, err, &viaError{why: "can't be reached"})
	}
	if proxy.Scheme != "https" {
		return conn, nil
	}
	secure := tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), RootCAs: p.options.viaRoots, NextProtos: []string{"http/1.1"}})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, timeoutOr(ctx, err, &viaError{why: "can't be spoken to by TLS", protocol: true})
	}
	return secure, nil
}

// timeoutOr returns err, or a timeout if the context has ended or the cause is a timeout. The cause is nil where it says
// nothing about the proxy.
func timeoutOr(ctx context.Context, cause error, err *viaError) *viaError {
	network, is := errors.AsType[net.Error](cause)
	timedOut := is && network.Timeout() // the dialer's timer can end before that of ctx
	if ctx.Err() != nil || timedOut {
		return &viaError{why: "does not answer in time", timeout: true}
	}
	return err
}

// tunnelVia makes a proxy connect to the target (RFC 9110, 9.3.6), and returns the tunnel.
func (p *Proxy) tunnelVia(ctx context.Context, proxy *url.URL, t reach.Target) (net.Conn, error) {
	conn, err := p.dialVia(ctx, proxy, t)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a past deadline ends askForTunnel
	tunnel, viaErr := askForTunnel(conn, proxy, t)
	inTime := stop()
	if viaErr == nil && inTime {
		return tunnel, nil
	}
	_ = conn.Close()
	return nil, timeoutOr(ctx, nil, viaErr)
}

// invalidAnswer reports an invalid HTTP answer of a proxy, or a broken connection.
func invalidAnswer() *viaError {
	return &viaError{why: "gives no answer that is one of HTTP", protocol: true}
}

// askForTunnel sends CONNECT on a connection to a proxy, and returns the tunnel, or an error if the proxy refuses.
func askForTunnel(conn net.Conn, proxy *url.URL, t reach.Target) (net.Conn, *viaError) {
	request := fmt.Sprintf("CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n", t)
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return nil, invalidAnswer()
	}
	limited := &io.LimitedReader{R: conn, N: maxHeader}
	from := bufio.NewReader(limited)
	const maxInterim = 5 // answers with a status below 200
	for range maxInterim {
		answer, err := http.ReadResponse(from, &http.Request{Method: http.MethodConnect})
		switch {
		case err != nil:
			return nil, invalidAnswer()
		case answer.StatusCode < 200 && answer.StatusCode != http.StatusSwitchingProtocols:
			continue // to the final answer
		case answer.StatusCode < 200 || answer.StatusCode > 299:
			return nil, viaRefused(answer.StatusCode)
		}
		limited.N = math.MaxInt64 // the tunnel's content is unlimited
		return &bufferedConn{conn, from}, nil
	}
	return nil, invalidAnswer()
}

// bufferedConn is a connection with bytes already read into a buffer.
type bufferedConn struct {
	net.Conn
	from *bufio.Reader
}

func (conn *bufferedConn) Read(to []byte) (int, error) { return conn.from.Read(to) }

// CloseWrite closes the sending direction.
func (conn *bufferedConn) CloseWrite() error { return closeWrite(conn.Conn) }
