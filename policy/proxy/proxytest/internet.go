// Package proxytest owns an internet for tests: named TLS servers behind an HTTP proxy on loopback,
// like a machine without another way out. It does not know the content of the servers.
package proxytest

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/must"
)

// Internet contains test servers and the proxy that leads to them.
type Internet struct {
	Proxy     string // the proxy's address, http://127.0.0.1:PORT
	Authority []byte // the certificate authority of the hosts, in PEM

	servers map[string]*httptest.Server // by host and port
}

// Start starts a TLS server for each host and port. The servers support HTTP/1.1 and HTTP/2, and stop
// when the test ends.
func Start(t testing.TB, hosts map[string]http.Handler) *Internet {
	t.Helper()
	n := &Internet{servers: make(map[string]*httptest.Server)}
	var names []string
	for at := range hosts {
		name, _, err := net.SplitHostPort(at)
		must.Do(t, err)
		names = append(names, name)
	}
	vouch := must.Get(authority.New(names))(t)
	n.Authority = vouch.Certificate()
	for at, handler := range hosts {
		name, _, _ := net.SplitHostPort(at)
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*must.Get(vouch.Leaf(name))(t)}}
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // for example, errors of clients that disconnect
		s.StartTLS()
		t.Cleanup(s.Close)
		n.servers[at] = s
	}
	proxy := httptest.NewServer(http.HandlerFunc(n.connect))
	t.Cleanup(proxy.Close)
	n.Proxy = proxy.URL
	return n
}

// connect connects the client to the target of a CONNECT request.
func (n *Internet) connect(w http.ResponseWriter, r *http.Request) {
	server := n.servers[strings.ToLower(r.Host)]
	if r.Method != http.MethodConnect || server == nil {
		http.Error(w, "no such host", http.StatusBadGateway)
		return
	}
	Tunnel(w, server.Listener.Addr().String())
}

// Tunnel answers CONNECT with the header of w. It connects the client to an address until both sides have
// finished.
func Tunnel(w http.ResponseWriter, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, "the server is gone", http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 Connection established\r\n")
	_ = w.Header().Write(&head)
	head.WriteString("\r\n")
	if _, err := head.WriteTo(from); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { copyHalf(to, early.Reader) })
	both.Go(func() { copyHalf(from, to) })
	both.Wait()
}

// copyHalf copies from until its end, and then closes the sending side of to.
func copyHalf(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from) // a side may disconnect early
	_ = to.(interface{ CloseWrite() error }).CloseWrite()
}
