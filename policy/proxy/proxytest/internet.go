// Package proxytest owns an internet for tests: named TLS servers behind an HTTP proxy on loopback,
// like a machine without another way out. It does not know the content of the servers.
package proxytest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Internet contains test servers and the proxy that leads to them.
type Internet struct {
	Proxy     string // the proxy's address, http://127.0.0.1:PORT
	Authority []byte // the certificate authority of the hosts, in PEM

	servers map[string]*httptest.Server // by host and port

	mu      sync.Mutex
	reached []string
}

// Start starts a TLS server for each host and port. The servers support HTTP/1.1 and HTTP/2, and stop
// when the test ends.
func Start(t testing.TB, hosts map[string]http.Handler) *Internet {
	t.Helper()
	vouch := newAuthority(t)
	n := &Internet{Authority: vouch.pem, servers: make(map[string]*httptest.Server)}
	for at, handler := range hosts {
		name, _, err := net.SplitHostPort(at)
		must.Do(t, err)
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{Certificates: []tls.Certificate{vouch.leaf(t, name)}}
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

// Reached returns the targets of all CONNECT requests, in order.
func (n *Internet) Reached() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.reached...)
}

// connect records the target of a CONNECT request and connects the client to that server.
func (n *Internet) connect(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.reached = append(n.reached, r.Host)
	n.mu.Unlock()
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

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// newAuthority returns a new certificate authority.
func newAuthority(t testing.TB) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	raw := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	certificate := must.Get(x509.ParseCertificate(raw))(t)
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}
}

// leaf returns a certificate of the authority for a host.
func (a *authority) leaf(t testing.TB, host string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key := newKey(t)
	raw := must.Get(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))(t)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return key
}
