package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
)

const (
	secret      = `s3cret/With+Signs=And"Quotes&More`
	placeholder = "agentci0StandsForTheSecretHere123"
)

// held is a proxy with credentials, and a server of TLS that stands for every host.
type held struct {
	*bench
	upstream *httptest.Server
	roots    *x509.CertPool // that commands trust: the run's authority alone
	used     []string
	dials    int
}

var internet = sync.OnceValue(func() *authority.Authority {
	a, err := authority.New([]string{"npm.example.org", "git.example.org", "other.example.org", "listed.example.org"})
	if err != nil {
		panic(err)
	}
	return a
})

// holding starts both. TOKEN goes into Authorization below /team of npm.example.org and
// on port 8443; listed.example.org is open for all, and has a credential too; WITHHELD is
// for npm.example.org and not for who asks.
func holding(t testing.TB, h2 bool, handler http.HandlerFunc, change ...func(*Options)) *held {
	t.Helper()
	h := &held{bench: &bench{TB: t}, roots: x509.NewCertPool()}
	h.upstream = httptest.NewUnstartedServer(handler)
	h.upstream.EnableHTTP2 = h2
	h.upstream.TLS = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return internet().Leaf(hello.ServerName) }}
	h.upstream.Config.ErrorLog = quiet
	h.upstream.StartTLS()
	t.Cleanup(h.upstream.Close)
	set := credential.Set{
		made(t, credential.Credential{Name: "TOKEN", Value: secret, Placeholder: placeholder, Header: "Authorization", Methods: []string{"GET", "HEAD", "POST"}}, "npm.example.org/team", "npm.example.org:8443", "listed.example.org"),
		made(t, credential.Credential{Name: "GIT", Value: "git-secret-value", Placeholder: "git0placeholder0", Header: "Authorization", Fetch: true}, "git.example.org/owner/repository"),
		made(t, credential.Credential{Name: "WITHHELD", Value: "withheld-secret-value", Placeholder: "withheld-placeholder0", Header: "Authorization", Methods: []string{"GET"}}, "npm.example.org"),
	}
	set[2].Denied = true
	run := must.Get(authority.New(set.Hosts()))(t)
	h.roots.AppendCertsFromPEM(run.Certificate())
	list := must.Get(reach.ParseList([]string{"listed.example.org", "other.example.org"}))(t)
	outside := x509.NewCertPool()
	outside.AppendCertsFromPEM(internet().Certificate())
	o := Options{
		Hosts: policy.Hosts{List: list, Key: "policy.network", Credentials: set}, Observe: h.observe,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			h.mu.Lock()
			h.dials++
			h.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", h.upstream.Listener.Addr().String())
		},
		Authority: run, Roots: func(reach.Target) *x509.CertPool { return outside }, Used: h.use,
	}
	h.start(o, change)
	return h
}

func made(t testing.TB, c credential.Credential, hosts ...string) credential.Credential {
	t.Helper()
	for _, host := range hosts {
		c.Scopes = append(c.Scopes, must.Get(credential.ParseScope(host))(t))
	}
	return c
}

func (h *held) use(name string, to reach.Target) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = append(h.used, name+" "+to.String())
	return h.refuseTo
}

// refusals are the reasons that were recorded.
func (h *held) refusals() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, r := range h.observed {
		if !r.Allowed {
			all = append(all, r.Protocol+" "+r.Target+" "+r.Rule+": "+r.Reason)
		}
	}
	return all
}

func (h *held) client(h2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.address}), TLSClientConfig: &tls.Config{RootCAs: h.roots}, Protocols: protocols, DisableCompression: true,
		ExpectContinueTimeout: time.Hour,
	}
	h.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// connect opens a tunnel, without TLS.
func (h *held) connect(target string) net.Conn {
	h.Helper()
	return must.Get(h.tryConnect(target))(h)
}

// tryConnect is connect where the proxy may be too slow for its own limits.
func (h *held) tryConnect(target string) (net.Conn, error) {
	conn, err := net.Dial("tcp", h.address)
	if err != nil {
		return nil, err
	}
	h.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target); err != nil {
		return nil, err
	}
	line := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(conn, line); err != nil || !strings.HasPrefix(string(line), "HTTP/1.1 200 ") {
		return nil, fmt.Errorf("CONNECT gives %q, %v", line, err)
	}
	return conn, nil
}

// over opens a tunnel, with TLS.
func (h *held) over(target string, protocols ...string) *tls.Conn {
	h.Helper()
	return must.Get(h.tryOver(target, protocols...))(h)
}

// tryOver is over where the proxy may be too slow for its own limits.
func (h *held) tryOver(target string, protocols ...string) (*tls.Conn, error) {
	tunnel, err := h.tryConnect(target)
	if err != nil {
		return nil, err
	}
	name, _, _ := net.SplitHostPort(target)
	conn := tls.Client(tunnel, &tls.Config{RootCAs: h.roots, ServerName: name, NextProtos: protocols})
	return conn, conn.Handshake()
}

// raw sends bytes through a tunnel, and gives all that comes back.
func (h *held) raw(target, request string) string {
	h.Helper()
	return exchange(h, h.over(target), request)
}

// seen is what a server was sent.
type seen struct {
	Method, Target, Host, Proto, Body string
	Header, Trailer                   http.Header
}

// watching is a server that keeps what it was sent.
func watching(t testing.TB, answer func(http.ResponseWriter, *http.Request, seen)) (http.HandlerFunc, func() []seen) {
	var mu sync.Mutex
	var all []seen
	return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			s := seen{r.Method, r.RequestURI, r.Host, r.Proto, string(body), r.Header.Clone(), r.Trailer.Clone()}
			mu.Lock()
			all = append(all, s)
			mu.Unlock()
			if answer != nil {
				answer(w, r, s)
			}
		}, func() []seen {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
}

func get(t testing.TB, client *http.Client, method, address string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, address, body))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response := must.Get(client.Do(r))(t)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Do(t, err, "after", text)
	return response, string(text)
}

// bothProtocols runs a test with each protocol on each side of the proxy.
func bothProtocols(t *testing.T, test func(t *testing.T, inside, outside bool)) {
	for _, inside := range []bool{false, true} {
		for _, outside := range []bool{false, true} {
			name := map[bool]string{false: "HTTP1", true: "h2"}
			t.Run(name[inside]+"-"+name[outside], func(t *testing.T) { test(t, inside, outside) })
		}
	}
}

// eachProtocol runs a test with each protocol on both sides of the proxy.
func eachProtocol(t *testing.T, test func(t *testing.T, h2 bool)) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprint("h2=", h2), func(t *testing.T) { test(t, h2) })
	}
}

const bearer = "Bearer " + placeholder

func TestSendsValueToItsHost(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		handler, sent := watching(t, func(w http.ResponseWriter, r *http.Request, s seen) {
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
			fmt.Fprintf(w, "you sent %s with %q", r.Header.Get("Authorization"), s.Body)
		})
		h := holding(t, outside, handler)
		response, text := get(t, h.client(inside), http.MethodPost, "https://npm.example.org/team/a?b=c", strings.NewReader("hello"), "Authorization", bearer, "X-Kept", "1", "User-Agent", "me")
		must.Same(t, "you sent "+bearer+` with "hello"`, text, "the answer", response.Header)
		must.Same(t, bearer, response.Header.Get("X-Echo"), "the answer", response.Header)
		want := []seen{{Method: "POST", Target: "/team/a?b=c", Host: "npm.example.org", Body: "hello", Proto: map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[outside], Header: http.Header{
			"Authorization": {"Bearer " + secret}, "X-Kept": {"1"}, "User-Agent": {"me"}, "Accept-Encoding": {"identity"}, "Content-Length": {"5"},
		}}}
		must.Same(t, want, sent(), "the server was sent")
		must.Same(t, []string{"TOKEN npm.example.org:443"}, h.used, "used")
		must.None(t, h.refusals(), "refused")
		for range 5 {
			if _, text := get(t, h.client(inside), http.MethodGet, "https://npm.example.org/team/a", nil, "Authorization", bearer); !strings.Contains(text, bearer) {
				t.Errorf("the answer is %q", text)
			}
		}
		if h.dials > 4 { // a connection may not be free again yet when the next request comes
			t.Errorf("it dialled %d times", h.dials)
		}
	})
}

// Each is a request with a placeholder where that has no business.
func TestRefusesMisplacedPlaceholder(t *testing.T) {
	t.Parallel()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+placeholder))
	const team = "https://npm.example.org/team/a"
	type wrong struct {
		name, method, address, body string
		header                      []string
		rule                        string
	}
	tests := []wrong{
		{"another path", "GET", "https://npm.example.org/others/a", "", []string{"Authorization", bearer}, "TOKEN"},
		{"a path that begins so", "GET", "https://npm.example.org/teams", "", []string{"Authorization", bearer}, "TOKEN"},
		{"a path that leads out", "GET", "https://npm.example.org/team/%2e%2e/others", "", []string{"Authorization", bearer}, "TOKEN"},
		{"a path that leads out, escaped twice", "GET", "https://npm.example.org/team/%252e%252e/others", "", []string{"Authorization", bearer}, "TOKEN"},
		{"a path with a backslash", "GET", "https://npm.example.org/team/..%5cothers", "", []string{"Authorization", bearer}, "TOKEN"},
		{"another method", "DELETE", team, "", []string{"Authorization", bearer}, "TOKEN"},
		{"another method by a header", "POST", team, "", []string{"Authorization", bearer, "X-HTTP-Method-Override", "DELETE"}, "TOKEN"},
		{"another method by the query", "POST", team + "?_method=delete", "", []string{"Authorization", bearer}, "TOKEN"},
		{"another host with a credential", "GET", "https://git.example.org/owner/repository/info/refs?service=git-upload-pack", "", []string{"Authorization", bearer}, "TOKEN"},
		{"a host in the path", "GET", "https://npm.example.org/team/" + placeholder, "", nil, "TOKEN"},
		{"the path, escaped", "GET", "https://npm.example.org/team/%61gentci0StandsForTheSecretHere123", "", nil, "TOKEN"},
		{"the query", "GET", team + "?token=" + placeholder, "", nil, "TOKEN"},
		{"the name of a parameter", "GET", team + "?" + placeholder + "=1", "", nil, "TOKEN"},
		{"another header", "GET", team, "", []string{"X-Api-Key", placeholder}, "TOKEN"},
		{"a header's name", "GET", team, "", []string{"X-" + placeholder, "1"}, "TOKEN"},
		{"a second line of its header", "GET", team, "", []string{"Authorization", bearer, "Authorization", bearer}, "TOKEN"},
		{"beside another", "GET", team, "", []string{"Authorization", bearer + ", Bearer x"}, "TOKEN"},
		{"user and password at once", "GET", team, "", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(placeholder+":"+placeholder))}, "TOKEN"},
		{"the proxy's header", "GET", team, "", []string{"Proxy-Authorization", basic}, "TOKEN"},
		{"a cookie", "GET", team, "", []string{"Cookie", "session=" + placeholder}, "TOKEN"},
		{"the referrer", "GET", team, "", []string{"Referer", "https://evil.example.org/?" + placeholder}, "TOKEN"},
		{"the body", "POST", team, "x=" + placeholder, nil, "TOKEN"},
		{"the body, where it is in place as well", "POST", team, `{"x":"` + placeholder + `"}`, []string{"Authorization", bearer}, "TOKEN"},
		{"the body in base64", "POST", team, basic, nil, "TOKEN"},
		{"a host that is open for all", "GET", "https://listed.example.org/x", "", []string{"X-Other", placeholder}, "TOKEN"},
		{"one that is withheld", "GET", team, "", []string{"Authorization", "Bearer withheld-placeholder0"}, "WITHHELD"},
		{"a push", "POST", "https://git.example.org/owner/repository.git/git-receive-pack", "", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("x:git0placeholder0"))}, "GIT"},
		{"a push without it", "GET", "https://git.example.org/owner/repository.git/info/refs?service=git-receive-pack", "", nil, "GIT"},
		{"what is not fetching", "GET", "https://git.example.org/owner/repository/raw/secrets", "", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("x:git0placeholder0"))}, "GIT"},
		{"another repository", "GET", "https://git.example.org/owner/another/info/refs?service=git-upload-pack", "", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("x:git0placeholder0"))}, "GIT"},
		{"what no credential is for", "GET", "https://npm.example.org/", "", nil, "TOKEN"},
	}
	for _, h2 := range []bool{false, true} {
		handler, sent := watching(t, nil)
		h := holding(t, h2, handler)
		client := h.client(h2)
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s/%t", test.name, h2), func(t *testing.T) {
				before := len(h.refusals())
				var body io.Reader
				if test.body != "" {
					body = strings.NewReader(test.body)
				}
				response, text := get(t, client, test.method, test.address, body, test.header...)
				if response.StatusCode != http.StatusForbidden || !strings.Contains(text, "agent-ci refused to reach") || !strings.Contains(text, "(policy.secrets: "+test.rule+")") {
					t.Errorf("the answer is %s: %s", response.Status, text)
				}
				if got := h.refusals()[before:]; len(got) != 1 || !strings.Contains(got[0], "policy.secrets: "+test.rule+": ") || strings.Contains(got[0], placeholder) {
					t.Errorf("recorded %q", got)
				}
			})
		}
		for _, s := range sent() {
			if told, _ := json.Marshal(s); s.Body != "" || strings.Contains(string(told), placeholder) {
				t.Errorf("the server was sent %s", told)
			}
		}
		if len(h.used) > 0 && h.used[0] != "TOKEN npm.example.org:443" {
			t.Errorf("used %q", h.used)
		}
	}
}

func TestRefusesPlaceholderOverHTTP(t *testing.T) {
	t.Parallel()
	server := echo(t)
	for name, request := range map[string]string{
		"header":  "GET http://plain.example.org/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: " + bearer + "\r\n\r\n",
		"path":    "GET http://plain.example.org/" + placeholder + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"body":    "POST http://plain.example.org/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 35\r\n\r\n1=" + placeholder,
		"trailer": "POST http://plain.example.org/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n1\r\na\r\n0\r\nX-End: " + placeholder + "\r\n\r\n",
		"connect": "CONNECT plain.example.org:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(placeholder+":")) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := holding(t, false, nil, plainly(t, server))
			answer := h.bench.raw(request)
			if !strings.HasPrefix(answer, "HTTP/1.1 403 ") || !strings.Contains(answer, "(policy.secrets: TOKEN)") || len(h.refusals()) != 1 {
				t.Errorf("the answer is %s, and recorded is %q", answer, h.refusals())
			}
		})
	}
}

func TestTunnelReachesOnlyItsTarget(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, true, handler)
	const get = "GET /team/a HTTP/1.1\r\n"
	for _, test := range []struct{ name, target, request, status, reason string }{
		{"another Host", "npm.example.org:443", get + "Host: git.example.org\r\nConnection: close\r\n\r\n", "421", "another host or port"},
		{"another port", "npm.example.org:443", get + "Host: npm.example.org:8443\r\nConnection: close\r\n\r\n", "421", "another host or port"},
		{"no port where one belongs", "npm.example.org:8443", get + "Host: npm.example.org\r\nConnection: close\r\n\r\n", "421", "another host or port"},
		{"an absolute address", "npm.example.org:443", "GET https://evil.example.org/team/a HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n", "421", "another host or port"},
		{"another scheme", "npm.example.org:443", "GET http://npm.example.org/team/a HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n", "421", "another scheme"},
		{"a user", "npm.example.org:443", "GET https://a:b@npm.example.org/team/a HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n", "421", "a user or a password"},
		{"a tunnel inside", "npm.example.org:443", "CONNECT evil.example.org:443 HTTP/1.1\r\nHost: evil.example.org:443\r\nConnection: close\r\n\r\n", "421", "a tunnel inside"},
		{"no path", "npm.example.org:443", "OPTIONS * HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n", "421", "no path"},
		{"an opaque target", "npm.example.org:443", "GET mailto:x HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n", "421", "another scheme"},
		{"no host", "npm.example.org:443", "GET /team/a HTTP/1.0\r\n\r\n", "421", "another host or port"},
		{"h2c", "npm.example.org:443", get + "Host: npm.example.org\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", "421", "another protocol"},
		{"a WebSocket without its number", "npm.example.org:443", get + "Host: npm.example.org\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n", "421", "another protocol"},
		{"a WebSocket with a body", "npm.example.org:443", get + "Host: npm.example.org\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 1\r\n\r\na", "421", "has a body"},
		{"a header that Connection takes back", "npm.example.org:443", get + "Host: npm.example.org\r\nConnection: authorization, close\r\n\r\n", "421", "Connection takes another header"},
		{"another scheme of the list's", "npm.example.org:443", "GET //evil.example.org/team/a HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n", "403", "open only for the requests of a secret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(h.refusals())
			answer := h.raw(test.target, strings.Replace(test.request, "\r\n", "\r\nAuthorization: Bearer mine\r\n", 1))
			if !strings.HasPrefix(answer, "HTTP/1.1 "+test.status+" ") && !strings.HasPrefix(answer, "HTTP/1.0 "+test.status+" ") {
				t.Errorf("the answer is %s", answer)
			}
			if got := h.refusals()[before:]; len(got) != 1 || !strings.Contains(got[0], test.reason) || !strings.Contains(got[0], "policy.secrets: TOKEN") {
				t.Errorf("recorded %q", got)
			}
		})
	}
	for _, target := range []string{"npm.example.org:22", "npm.example.org:8444", "evil.example.org:443", "team.npm.example.org:443"} {
		t.Run("CONNECT to "+target, func(t *testing.T) {
			answer := h.bench.raw("CONNECT " + target + " HTTP/1.1\r\nHost: npm.example.org:443\r\n\r\n")
			must.Same(t, true, strings.HasPrefix(answer, "HTTP/1.1 403 "), "the answer is", answer)
		})
	}
	must.None(t, sent(), "the server was sent")
	for _, test := range []struct{ target, request string }{
		{"npm.example.org:443", get + "Host: NPM.example.org.:443\r\nConnection: close\r\n\r\n"},
		{"npm.example.org:443", get + "Host: npm.example.org\r\nConnection: Upgrade, close\r\nUpgrade: TLS/1.2\r\n\r\n"},
		{"npm.example.org:8443", get + "Host: npm.example.org:8443\r\nConnection: close\r\n\r\n"},
		{"npm.example.org:443", "GET https://npm.example.org/team/a HTTP/1.1\r\nHost: evil.example.org\r\nConnection: close\r\n\r\n"},
	} {
		if answer := h.raw(test.target, test.request); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("%q gives %s", test.request, answer)
		}
	}
	for _, s := range sent() {
		if !strings.HasPrefix(s.Host, "npm.example.org") || s.Header.Get("Upgrade") != "" {
			t.Errorf("the server was sent %v", s)
		}
	}
}

func TestTunnelRequiresTLSForTarget(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, false, handler)
	t.Run("another server name", func(t *testing.T) {
		conn := tls.Client(h.connect("npm.example.org:443"), &tls.Config{RootCAs: h.roots, ServerName: "git.example.org"})
		must.Fail(t, "", conn.Handshake(), "it is let through")
		if got := h.refusals(); len(got) != 1 || !strings.Contains(got[0], "another server name") {
			t.Errorf("recorded %q", got)
		}
	})
	t.Run("no TLS", func(t *testing.T) {
		conn := h.connect("npm.example.org:443")
		must.Get(io.WriteString(conn, "GET /team/a HTTP/1.1\r\nHost: npm.example.org\r\nAuthorization: "+bearer+"\r\n\r\n"))(t)
		answer, _ := io.ReadAll(conn)
		if got := h.refusals(); len(got) != 2 || !strings.Contains(got[1], "no TLS") || !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") {
			t.Errorf("the answer is %s; recorded %q", answer, got)
		}
	})
	t.Run("an old version", func(t *testing.T) {
		conn := tls.Client(h.connect("npm.example.org:443"), &tls.Config{RootCAs: h.roots, ServerName: "npm.example.org", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
		must.Fail(t, "", conn.Handshake(), "it is let through")
	})
	t.Run("no server name", func(t *testing.T) {
		conn := tls.Client(h.connect("npm.example.org:443"), &tls.Config{InsecureSkipVerify: true})
		must.Do(t, conn.Handshake())
		if leaf := conn.ConnectionState().PeerCertificates[0]; leaf.VerifyHostname("npm.example.org") != nil {
			t.Errorf("the certificate is for %v", leaf.DNSNames)
		}
	})
	must.None(t, sent(), "the server was sent")
}

// A host without a credential for who asks keeps its own TLS.
func TestTunnelWithoutCredentialKeepsTLS(t *testing.T) {
	t.Parallel()
	h := holding(t, false, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	client := h.client(false)
	must.Fail(t, "", must.Err(client.Get("https://other.example.org/")), "the run's authority vouches for a host without a credential")
	h.roots.AppendCertsFromPEM(internet().Certificate())
	if _, text := get(t, h.client(false), "GET", "https://other.example.org/", nil, "Authorization", bearer); text != bearer {
		t.Errorf("it was sent %q", text)
	}
}

// Of a host that the list opens as well, requests without a placeholder pass as they are.
func TestForwardsListedRequestsUnchanged(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, true, handler)
	for _, method := range []string{"GET", "DELETE", "PROPFIND"} {
		if response, text := get(t, h.client(true), method, "https://listed.example.org/a/../b?_method=PUT", nil, "Authorization", "Bearer mine"); response.StatusCode != http.StatusOK {
			t.Errorf("%s gives %s: %s", method, response.Status, text)
		}
	}
	for _, s := range sent() {
		if s.Target != "/a/../b?_method=PUT" || s.Header.Get("Authorization") != "Bearer mine" || len(h.used) > 0 {
			t.Errorf("the server was sent %+v with %q", s, h.used)
		}
	}
}

// What comes before an answer is not given on, nor what the server calls its status.
func TestCleansAnswerHead(t *testing.T) {
	t.Parallel()
	h := holding(t, false, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 103 Early\r\nLink: <%s>\r\n\r\nHTTP/1.1 200 %[1]s\r\nAlt-Svc: h3=\":443\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", secret)
	})
	answer := h.raw("npm.example.org:443", "GET /team/a HTTP/1.1\r\nHost: npm.example.org\r\nConnection: close\r\n\r\n")
	must.Same(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", answer, "the answer")
}

// A query with a space in it, which HTTP/2 can have, would end the target of HTTP/1.1.
func TestRefusesSpaceInQuery(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, false, handler)
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", "https://npm.example.org/team/a", nil))(t)
	r.URL.RawQuery = "x HTTP/1.1"
	response, err := h.client(true).Do(r)
	if err == nil {
		response.Body.Close()
	}
	if len(sent()) > 0 || err == nil && response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the server was sent %v, %v", sent(), err)
	}
}

func TestUntrustedServersGetNothing(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, false, handler, func(o *Options) { o.Roots = nil })
	response, text := get(t, h.client(false), "GET", "https://npm.example.org/team/a", nil, "Authorization", bearer)
	if response.StatusCode != http.StatusBadGateway || !strings.Contains(text, "vouches for its certificate") || len(sent()) > 0 {
		t.Errorf("the answer is %s: %s", response.Status, text)
	}
}

func TestRefusesUnrecordedUse(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, false, handler, func(o *Options) {
		o.Used = func(string, reach.Target) error { return io.ErrClosedPipe }
	})
	response, text := get(t, h.client(false), "GET", "https://npm.example.org/team/a", nil, "Authorization", bearer)
	must.Same(t, http.StatusServiceUnavailable, response.StatusCode, response.Status, text)
	must.None(t, sent(), response.Status, text)
}

// Where an authority on h2 differs, or Host stands beside it.
func TestRefusesOtherAuthorityOverHTTP2(t *testing.T) {
	t.Parallel()
	handler, sent := watching(t, nil)
	h := holding(t, true, handler)
	client := h.client(true)
	for _, host := range []string{"git.example.org", "npm.example.org:8443", "evil.example.org"} {
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", "https://npm.example.org/team/a", nil))(t)
		r.Host = host
		r.Header.Set("Authorization", bearer)
		response := must.Get(client.Do(r))(t)
		response.Body.Close()
		must.Same(t, http.StatusMisdirectedRequest, response.StatusCode, host, response.Status)
	}
	must.None(t, sent(), "the server was sent")
	must.Same(t, 3, len(h.refusals()), "recorded")
}
