package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is the log of servers whose complaints are expected.
var quiet = log.New(io.Discard, "", 0)

// bench is a proxy, a server that stands for every host of the internet, and
// what was asked of both.
type bench struct {
	testing.TB
	address string // of the proxy
	proxy   *Proxy
	dialled chan string // addresses, in order

	mu       sync.Mutex
	resolved []string
	observed []Request
	refuseTo error // of Observe
}

// addresses are what names resolve to.
var addresses = map[string]string{
	"api.example.com": "93.184.216.34", "a.example.org": "93.184.216.35", "b.example.org": "93.184.216.36 2606:2800:220:1::36",
	"empty.example.org": "", "port.example.net": "93.184.216.40",
}

var listed = []string{"api.example.com", "*.example.org", "port.example.net:8443", "93.184.216.50"}

func newBench(t testing.TB, upstream net.Addr, change ...func(*Options)) *bench {
	t.Helper()
	list := must.Get(reach.ParseList(listed))(t)
	set := must.Get(rules.Load(rules.File{Name: "r.rules", Data: []byte(`network_rule(host = "ruled.example.org", protocol = "https", decision = "deny", justification = "use a.example.org")`)}))(t)
	b := &bench{TB: t, dialled: make(chan string, 100)}
	o := Options{
		Hosts: policy.Hosts{List: list, Key: "policy.network", Rules: set}, Observe: b.observe, Resolve: b.resolve,
		Dial: func(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
			b.dialled <- address.String()
			if strings.HasSuffix(address.Addr().String(), ".36") {
				return nil, errors.New("no route")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", upstream.String())
		},
	}
	b.start(o, change)
	return b
}

func (b *bench) start(o Options, change []func(*Options)) {
	for _, c := range change {
		c(&o)
	}
	l := listen(b)
	b.address, b.proxy = l.Addr().String(), Start(l, o)
	b.Cleanup(b.proxy.Close)
}

// listen returns a listener on loopback. Nobody accepts its connections until a test does.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// limited changes the limits of a proxy.
func limited(change func(*limits)) func(*Options) {
	return func(o *Options) {
		o.limits = defaultLimits
		change(&o.limits)
	}
}

// dial connects to an address until the test ends.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (b *bench) observe(r Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observed = append(b.observed, r)
	return b.refuseTo
}

func (b *bench) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resolved = append(b.resolved, name)
	texts, known := addresses[name]
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	var all []netip.Addr
	for text := range strings.FieldsSeq(texts) {
		all = append(all, netip.MustParseAddr(text))
	}
	return all, nil
}

// raw sends a request to the proxy, byte for byte but for the header that makes
// it the connection's last, and gives all that comes back.
func (b *bench) raw(request string) string {
	b.Helper()
	if !strings.Contains(request, "\nConnection:") {
		request = strings.Replace(request, "\r\nHost:", "\r\nConnection: close\r\nHost:", 1)
	}
	return exchange(b, dial(b, b.address), request)
}

// exchange writes to a connection, gives all that comes back, and closes it.
func exchange(t testing.TB, conn net.Conn, request string) string {
	t.Helper()
	defer conn.Close()
	must.Get(io.WriteString(conn, request))(t)
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		t.Fatal(err)
	}
	return string(answer)
}

func (b *bench) client(trust *tls.Config) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: b.address, User: url.UserPassword("for", "the-proxy")}), TLSClientConfig: trust}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// told are the requests that were observed, without words.
func (b *bench) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.observed {
		all = append(all, fmt.Sprintf("%s %s %t %s", r.Protocol, r.Target, r.Allowed, r.Rule))
	}
	return all
}

// echo tells what a host of the internet was sent.
func echo(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("X-End", "z")
		fmt.Fprintf(w, "%s %s host=%s body=%q\n", r.Method, r.URL, r.Host, body)
		for _, name := range []string{"Authorization", "Proxy-Authorization", "Proxy-Connection", "Upgrade", "Connection", "X-Listed", "X-Kept", "User-Agent", "Accept-Encoding", "X-Forwarded-For", "Via", "Te", "Http2-Settings"} {
			if value := r.Header.Get(name); value != "" {
				fmt.Fprintf(w, "%s=%s\n", name, value)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestForwardsHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, echo(t).Listener.Addr())
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://API.example.com/a%2Fb?q=1", strings.NewReader("hello")))(t)
	for name, value := range map[string]string{"Connection": "X-Listed", "X-Listed": "1", "X-Kept": "2", "Authorization": "Bearer mine", "Te": "trailers", "User-Agent": "me"} {
		request.Header.Set(name, value)
	}
	response := must.Get(b.client(nil).Do(request))(t)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(t)
	want := "POST /a%2Fb?q=1 host=api.example.com body=\"hello\"\nAuthorization=Bearer mine\nConnection=close\nX-Kept=2\nUser-Agent=me\nAccept-Encoding=gzip\n"
	must.Same(t, want, string(body))
	must.Same(t, "z", response.Header.Get("X-End"), "the header", response.Header)
	must.Same(t, "", response.Header.Get("Proxy-Authenticate"), "the header", response.Header)
	must.Same(t, "93.184.216.34:80", <-b.dialled, "dialled")
	must.Same(t, []string{"http api.example.com:80 true policy.network: api.example.com"}, b.told(), "told")
}

func TestTunnelCarriesTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %s", r.Host, len(body), r.Header.Get("Proxy-Authorization"))
	}))
	defer server.Close()
	b := newBench(t, server.Listener.Addr())
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig
	trust.ServerName = "example.com"
	response := must.Get(b.client(trust).Post("https://a.example.org/x", "text/plain", strings.NewReader(strings.Repeat("x", 3<<20))))(t)
	defer response.Body.Close()
	must.Same(t, "a.example.org 3145728 ", string(must.Get(io.ReadAll(response.Body))(t)), "the answer")
	must.Same(t, "93.184.216.35:443", <-b.dialled, "dialled")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, request string
		status        string   // of the answer
		words         []string // in it
		told          string
	}{
		{
			"a host that nothing opens", "CONNECT evil.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 Refused by agent-ci (no rule allows it): evil.example.com:443 No rule allows it",
			[]string{"policy.network in the job has api.example.com, *.example.org", "Do without it", "can add evil.example.com to policy.network.allow", "Proxy-Status: agent-ci; error=http_request_denied"},
			"https evil.example.com:443 false ",
		},
		{"by HTTP", "GET http://evil.example.com/x HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "HTTP/1.1 403 Forbidden", []string{`refused to reach "evil.example.com:80" by http. No rule allows it`}, "http evil.example.com:80 false "},
		{"a rule", "CONNECT ruled.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 Refused by agent-ci (r.rules:1): ruled.example.org:443 use a.example.org.", []string{"(r.rules:1)"}, "https ruled.example.org:443 false r.rules:1"},
		{"the bare name of a suffix", "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", nil, "https example.org:443 false "},
		{"another port", "CONNECT api.example.com:22 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"can add api.example.com:22 to"}, "https api.example.com:22 false "},
		{"port 80 by CONNECT", "CONNECT api.example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", nil, "https api.example.com:80 false "},
		{"an address that is not listed", "CONNECT 93.184.216.51:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", nil, "https 93.184.216.51:443 false "},
		{"loopback", "CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"It is a loopback address, which no list of hosts opens.", "without the proxy, at 127.0.0.1"}, "https 127.0.0.1:443 false built-in:local-address"},
		{"the metadata service", "GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", nil, "http 169.254.169.254:80 false built-in:local-address"},
		{"a decimal address", "CONNECT 2130706433:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"ends in a number"}, "https 2130706433:443 false built-in:target"},
		{"a mapped address", "CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"inside an IPv6"}, "https [::ffff:127.0.0.1]:443 false built-in:target"},
		{"a user before the host", "CONNECT api.example.com@evil.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"a user or a password"}, "https evil.example.com:443 false built-in:target"},
		{"credentials in the target", "GET http://a:b@api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"a user or a password"}, "http api.example.com false built-in:target"},
		{"https without CONNECT", "GET https://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"https goes through CONNECT"}, "http api.example.com false built-in:target"},
		{"another scheme", "GET ftp://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"is not http"}, "http api.example.com false built-in:target"},
		{"no target", "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "HTTP/1.1 403", []string{"is not in its first line"}, "http  false built-in:target"},
		{"CONNECT to a path", "CONNECT /x HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n", "HTTP/1.1 403", []string{"is not in its first line"}, "https  false built-in:target"},
		{"CONNECT without a port", "CONNECT api.example.com HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403", []string{"names no port"}, "https api.example.com false built-in:target"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, echo(t).Listener.Addr())
			answer := b.raw(test.request)
			must.Same(t, true, strings.HasPrefix(answer, test.status), "the answer is", answer)
			must.Contain(t, answer, test.words...)
			must.Same(t, []string{test.told}, b.told(), "told")
			if len(b.resolved) > 0 || len(b.dialled) > 0 {
				t.Errorf("it resolved %q and dialled %d times", b.resolved, len(b.dialled))
			}
		})
	}
}

func TestRefusesOwnAddress(t *testing.T) {
	t.Parallel()
	own := must.Get(ownAddresses())(t)
	if !own[netip.MustParseAddr("127.0.0.1")] {
		t.Fatalf("the machine's addresses are %v", own)
	}
	for _, each := range []string{"93.184.216.34", "10.0.0.7", "fd12::7"} {
		for _, private := range []bool{false, true} {
			address := netip.MustParseAddr(each)
			must.Same(t, "one of this machine", describeUndialable(address, map[netip.Addr]bool{address: true}, private), each, "of this machine is", "with private addresses", private)
		}
	}
}

// The addresses that were looked at are the ones that are dialled, one after
// the other.
func TestTriesNextAddress(t *testing.T) {
	t.Parallel()
	b := newBench(t, echo(t).Listener.Addr())
	if answer := b.raw("GET http://b.example.org/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf("the answer is\n%s", answer)
	}
	if first, second := <-b.dialled, <-b.dialled; first != "93.184.216.36:80" || second != "[2606:2800:220:1::36]:80" {
		t.Errorf("dialled %s and %s", first, second)
	}
	must.Same(t, []string{"b.example.org"}, b.resolved, "resolved")
}

func TestReachesListedTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ request, dialled string }{
		{"GET http://port.example.net:8443/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "93.184.216.40:8443"},
		{"CONNECT port.example.net:8443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n", "93.184.216.40:8443"},
		{"CONNECT 93.184.216.50:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n", "93.184.216.50:443"},
		{"CONNECT A.Example.ORG.:443 HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n", "93.184.216.35:443"},
	} {
		t.Run(test.request[:30], func(t *testing.T) {
			b := newBench(t, echo(t).Listener.Addr())
			if answer := b.raw(test.request); !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !strings.Contains(answer, "GET / host=") {
				t.Errorf("the answer is\n%s", answer)
			}
			must.Same(t, test.dialled, <-b.dialled, "dialled")
		})
	}
}

// The first line decides, and what a client does about framing and other
// protocols does not get through.
func TestDefusesHostileRequests(t *testing.T) {
	t.Parallel()
	const get = "GET http://api.example.com/ HTTP/1.1\r\n"
	for _, test := range []struct{ name, request, want, never string }{
		{"another Host header", get + "Host: evil.example.com\r\nConnection: close\r\n\r\n", "host=api.example.com ", "evil"},
		{"two Host headers", get + "Host: api.example.com\r\nHost: evil.example.com\r\n\r\n", "HTTP/1.1 400 ", "200 OK"},
		{"an upgrade", get + "Host: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nX-Kept: 1\r\n\r\n", "X-Kept=1", "Upgrade="},
		{"an upgrade's settings", get + "Host: x\r\nConnection: close\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", "host=api.example.com ", "Settings"},
		{"credentials for the proxy", get + "Host: x\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: close\r\n\r\n", "host=api.example.com ", "Proxy-"},
		{"length and chunks", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET http://evil.example.com/ HTTP/1.1\r\n\r\n", `body="abc"`, "evil"},
		{"two lengths", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", "HTTP/1.1 400 ", "200 OK"},
		{"an unknown framing", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 501 ", "200 OK"},
		{"a header by a space", get + "Host: x\r\nTransfer-Encoding : chunked\r\n\r\n", "HTTP/1.1 400 ", "200 OK"},
		{"a bare line feed in the target", "GET http://api.example.com/\nX: y HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 ", "200 OK"},
		{"a header that is too long", get + "Host: x\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "HTTP/1.1 431 ", "200 OK"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 ", "200 OK"},
		{"SOCKS", "\x05\x01\x00\r\n\r\n", "HTTP/1.1 400 ", "200 OK"},
		{"all of a server", "OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", "HTTP/1.1 403 ", "200 OK"},
		{"a body that is too long", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 413 ", "200 OK"},
		{"a second request on the connection", get + "Host: x\r\nConnection: keep-alive\r\n\r\nGET http://evil.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", "HTTP/1.1 403 Forbidden", "host=evil"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, echo(t).Listener.Addr(), limited(func(l *limits) { l.bytes = 1 << 20 }))
			answer := b.raw(test.request)
			must.Contain(t, answer, test.want)
			must.Lack(t, strings.ReplaceAll(answer, "evil.example.com:80", ""), test.never)
		})
	}
}

func TestBoundsBytes(t *testing.T) {
	t.Parallel()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		part := []byte(strings.Repeat("x", 64<<10))
		for {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	bounded := limited(func(l *limits) { l.bytes = 1 << 20 })
	for _, request := range []string{
		"GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		b := newBench(t, endless.Listener.Addr(), bounded)
		if n := len(b.raw(request)); n > 2<<20 {
			t.Errorf("%.8s gave %d bytes", request, n)
		}
	}
	b := newBench(t, echo(t).Listener.Addr(), bounded)
	body := "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat("x", 1<<16)+"\r\n", 20) + "0\r\n\r\n"
	must.Lack(t, b.raw(body), "200 OK")
}

func TestDropsSlowClients(t *testing.T) {
	t.Parallel()
	silent := listen(t)
	for name, request := range map[string]string{
		"a header that never ends":  "GET http://api.example.com/ HTTP/1.1\r\nX: ",
		"a body that never comes":   "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
		"a tunnel in which nothing": "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, silent.Addr(), limited(func(l *limits) { l.header, l.idle = 50*time.Millisecond, 50*time.Millisecond }))
			conn := dial(t, b.address)
			must.Get(io.WriteString(conn, request))(t)
			_, _ = io.Copy(io.Discard, conn) // until it is let go
		})
	}
}

// busy is a listener that counts the connections which are open at once.
type busy struct {
	net.Listener
	mu         sync.Mutex
	open, most int
}

func (l *busy) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	l.most = max(l.most, l.open)
	return &counted{Conn: conn, closed: sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	})}, nil
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestQueuesExcessConnections(t *testing.T) {
	t.Parallel()
	counting := &busy{Listener: listen(t)}
	b := newBench(t, echo(t).Listener.Addr(), limited(func(l *limits) { l.connections = 2 }))
	b.proxy.Close()
	b.address, b.proxy = counting.Addr().String(), Start(counting, b.proxy.options)
	t.Cleanup(b.proxy.Close)
	var clients sync.WaitGroup
	for range 12 {
		clients.Go(func() {
			if answer := b.raw("GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
				t.Errorf("the answer is\n%s", answer)
			}
		})
	}
	clients.Wait()
	b.proxy.Close()
	if counting.most > 2 {
		t.Errorf("%d connections were open at once", counting.most)
	}
}

func TestCloseEndsTunnels(t *testing.T) {
	t.Parallel()
	b := newBench(t, listen(t).Addr())
	for _, half := range []bool{false, true} {
		conn := dial(t, b.address)
		must.Get(io.WriteString(conn, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
		if half {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}
	b.proxy.Close()
	b.proxy.Close()
}

func TestReportsUnreachableTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, request, want string }{
		{"no such name", "CONNECT gone.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 502 agent-ci did not reach gone.example.org:443: no such name is known\r\n"},
		{"a name without addresses", "CONNECT empty.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 502 agent-ci did not reach empty.example.org:443: no such name is known\r\n"},
		{"nobody answers", "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "agent-ci may reach api.example.com:80 for you, but nothing answers there.\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Contain(t, newBench(t, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}).raw(test.request), test.want)
		})
	}
}

func TestDialsNothingUnrecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t, echo(t).Listener.Addr())
	b.refuseTo = errors.New("disk full")
	for _, request := range []string{"CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"} {
		if answer := b.raw(request); !strings.HasPrefix(answer, "HTTP/1.1 503 ") {
			t.Errorf("the answer is\n%s", answer)
		}
	}
	must.Same(t, 0, len(b.dialled), "it dialled")
}

// A part of an answer must not look like the whole.
func TestTruncatedAnswerFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	response := must.Get(newBench(t, server.Listener.Addr()).client(nil).Get("http://api.example.com/"))(t)
	defer response.Body.Close()
	must.Fail(t, "", must.Err(io.ReadAll(response.Body)), "the answer")
}
