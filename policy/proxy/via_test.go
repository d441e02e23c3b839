package proxy

import (
	"bufio"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// relay is a proxy of the machine, behind which one server stands for all hosts.
type relay struct {
	*httptest.Server
	behind net.Addr
	user   string // "user:password", empty for none

	mu    sync.Mutex
	asked []string
}

func newRelay(t *testing.T, behind net.Addr, user string, tls bool) *relay {
	t.Helper()
	r := &relay{behind: behind, user: user}
	r.Server = httptest.NewUnstartedServer(r)
	if tls {
		r.StartTLS()
	} else {
		r.Start()
	}
	t.Cleanup(r.Close)
	return r
}

func (r *relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	r.asked = append(r.asked, fmt.Sprintf("%s %s %s", request.Method, request.RequestURI, request.Host))
	r.mu.Unlock()
	given := http.Header{"Authorization": request.Header["Proxy-Authorization"]}
	name, password, _ := (&http.Request{Header: given}).BasicAuth()
	switch {
	case r.user != "" && name+":"+password != r.user:
		w.Header().Set("Proxy-Authenticate", `Basic realm="secret-realm"`)
		http.Error(w, "words of the proxy", http.StatusProxyAuthRequired)
	case request.Method == http.MethodConnect:
		w.Header().Set("X-Proxy", "words of the proxy")
		proxytest.Tunnel(w, r.behind.String())
	default:
		fmt.Fprintf(w, "by the proxy: %s with %q", request.RequestURI, request.Header.Get("X-Kept"))
	}
}

// requests are those that it was asked so far.
func (r *relay) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// by has a proxy reach all targets by another one.
func by(t *testing.T, address string, roots *x509.CertPool) func(*Options) {
	t.Helper()
	to := must.Get(url.Parse(address))(t)
	return func(o *Options) {
		o.Via, o.viaRoots = func(reach.Target) *url.URL { return to }, roots
	}
}

func (r *relay) address(user string) string {
	if user == "" {
		return r.URL
	}
	return strings.Replace(r.URL, "://", "://"+user+"@", 1)
}

func (r *relay) roots() *x509.CertPool {
	if r.Certificate() == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(r.Certificate())
	return pool
}

const (
	viaTunnel = "CONNECT internal.example.org:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic eDp5\r\n\r\nGET /in HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n"
	viaPlain  = "GET http://port.example.net:8443/a?b HTTP/1.1\r\nHost: evil.example.com\r\nProxy-Authorization: Basic eDp5\r\nX-Kept: 1\r\n\r\n"
)

func TestReachesTargetsByUpstreamProxy(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "me:p%40ss%3Aw%2Frd"} {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q/%t", user, tls), func(t *testing.T) {
				known, _ := url.PathUnescape(user)
				relay := newRelay(t, echo(t).Listener.Addr(), known, tls)
				b := newBench(t, nil, by(t, relay.address(user), relay.roots()))
				answer := b.raw(viaTunnel)
				if !strings.HasPrefix(answer, "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n") || !strings.Contains(answer, "GET /in host=y") || strings.Contains(answer, "words of the proxy") {
					t.Errorf("the answer is\n%s", answer)
				}
				answer = b.raw(viaPlain)
				if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.Contains(answer, `by the proxy: http://port.example.net:8443/a?b with "1"`) {
					t.Errorf("the answer is\n%s", answer)
				}
				want := []string{"CONNECT internal.example.org:443 internal.example.org:443", "GET http://port.example.net:8443/a?b port.example.net:8443"}
				must.Same(t, want, relay.requests(), "the other proxy was asked")
				for _, r := range b.observed {
					if r.Via != relay.Listener.Addr().String() || !r.Allowed {
						t.Errorf("observed %+v", r)
					}
				}
				if len(b.resolved) > 0 || len(b.dialled) > 0 {
					t.Errorf("it resolved %q and dialled %d times by itself", b.resolved, len(b.dialled))
				}
			})
		}
	}
}

// The list and what no list opens hold all the same.
func TestUpstreamProxyGetsOnlyListedTargets(t *testing.T) {
	t.Parallel()
	relay := newRelay(t, echo(t).Listener.Addr(), "", false)
	b := newBench(t, nil, by(t, relay.URL, nil))
	for _, target := range []string{"evil.example.com:443", "127.0.0.1:443", "169.254.169.254:80", "metadata.google.internal:443", "localhost:443", "10.0.0.1:443", "api.example.com:22", "ruled.example.org:443", "2130706433:443"} {
		if answer := b.raw("CONNECT " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
			t.Errorf("%s: the answer is\n%s", target, answer)
		}
	}
	must.None(t, relay.requests(), "the other proxy was asked")
	for _, r := range b.observed {
		if r.Allowed || r.Via != "" {
			t.Errorf("observed %+v", r)
		}
	}
}

// What the other proxy does not lead to is told with its status, and nothing that it said.
func TestReportsUpstreamProxyRefusal(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"", "me:wrong"} {
		relay := newRelay(t, echo(t).Listener.Addr(), "me:right", false)
		b := newBench(t, nil, by(t, relay.address(given), nil))
		for _, request := range []string{viaTunnel, viaPlain} {
			answer := b.raw(request)
			if !strings.HasPrefix(answer, "HTTP/1.1 502 ") || !strings.Contains(answer, "wants a user and a password other than it is given (status 407)") {
				t.Errorf("the answer is\n%s", answer)
			}
			for _, word := range []string{"secret-realm", "words of the proxy", "Proxy-Authenticate", relay.Listener.Addr().String(), "wrong", "right"} {
				must.Lack(t, answer, word)
			}
		}
	}
}

// canned is a proxy that gives the same answer to whatever begins to ask.
func canned(t *testing.T, answer string, thenClose bool) string {
	t.Helper()
	l := listen(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				_, _ = io.WriteString(conn, answer)
				if !thenClose {
					_, _ = io.Copy(io.Discard, conn)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return "http://" + l.Addr().String()
}

func TestChecksUpstreamProxyAnswers(t *testing.T) {
	t.Parallel()
	long := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n"
	many := "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20<<10) + "\r\n"
	for _, test := range []struct{ name, answer, status, says string }{
		{"refuses", "HTTP/1.1 403 No\r\nX-Secret: words of the proxy\r\nContent-Length: 5\r\n\r\nwords", "HTTP/1.1 502 ", "answers with the status 403"},
		{"knows no such name", "HTTP/1.1 503 No\r\n\r\n", "HTTP/1.1 502 ", "answers with the status 503"},
		{"redirects", "HTTP/1.1 302 There\r\nLocation: http://evil.example.com/\r\n\r\n", "HTTP/1.1 502 ", "answers with the status 302"},
		{"switches protocols", "HTTP/1.1 101 Other\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 502 ", "answers with the status 101"},
		{"says nothing", "", "HTTP/1.1 502 ", "gives no answer that is one of HTTP"},
		{"speaks something else", "SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 502 ", "gives no answer that is one of HTTP"},
		{"breaks off", "HTTP/1.1 200 OK\r\nX: y", "HTTP/1.1 502 ", "gives no answer that is one of HTTP"},
		{"a long header", long, "HTTP/1.1 502 ", "gives no answer that is one of HTTP"},
		{"many headers", many, "HTTP/1.1 502 ", "gives no answer that is one of HTTP"},
		{"no end of interim answers", strings.Repeat("HTTP/1.1 103 Wait\r\n\r\n", 100), "HTTP/1.1 502 ", "gives no answer that is one of HTTP"},
		{"interim answers and more", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nall that comes", "HTTP/1.1 200 Connection established\r\n\r\nall that comes", ""},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nall that comes", "HTTP/1.1 200 Connection established\r\n\r\nall that comes", ""},
		{"another good status", "HTTP/1.1 204 Empty\r\n\r\nall that comes", "HTTP/1.1 200 Connection established\r\n\r\nall that comes", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, nil, by(t, canned(t, test.answer, true), nil))
			if slices.Contains([]string{"says nothing", "speaks something else", "switches protocols"}, test.name) {
				if answer := b.raw(viaPlain); !strings.HasPrefix(answer, test.status) || !strings.Contains(answer, "the proxy of this machine "+test.says) {
					t.Errorf("over plain http the answer is\n%s", answer)
				}
			}
			answer := b.raw("CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
			if !strings.HasPrefix(answer, test.status) || !strings.Contains(answer, test.says) || strings.Contains(answer, "words") || strings.Contains(answer, "evil") {
				t.Errorf("the answer is\n%.1000s", answer)
			}
		})
	}
}

func TestUpstreamProxyTimesOut(t *testing.T) {
	t.Parallel()
	waits := []time.Duration{50 * time.Millisecond}
	for limit := 10 * time.Microsecond; limit < 200*time.Microsecond; limit += 10 * time.Microsecond {
		waits = append(waits, limit) // some end while the proxy is dialled
	}
	for name, address := range map[string]string{
		"without a word": "http://" + listen(t).Addr().String(), "without TLS": "https://" + listen(t).Addr().String(), "in its header": canned(t, "HTTP/1.1 200 OK\r\nX: y", false),
	} {
		for _, limit := range waits {
			t.Run(name+" after "+limit.String(), func(t *testing.T) {
				b := newBench(t, nil, by(t, address, nil), limited(func(l *limits) { l.connect = limit }))
				if answer := b.raw("CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 504 ") || !strings.Contains(answer, "the proxy of this machine does not answer in time") {
					t.Errorf("the answer is\n%s", answer)
				}
			})
		}
	}
}

func TestReportsUnreachableUpstreamProxy(t *testing.T) {
	t.Parallel()
	stranger := newRelay(t, echo(t).Listener.Addr(), "", true) // whom nobody vouches for
	for address, says := range map[string]string{
		"http://127.0.0.1:1": "can't be reached", stranger.URL: "can't be spoken to by TLS",
	} {
		for _, request := range []string{viaTunnel, viaPlain} {
			b := newBench(t, nil, by(t, address, x509.NewCertPool()))
			if answer := b.raw(request); !strings.HasPrefix(answer, "HTTP/1.1 502 ") || !strings.Contains(answer, "the proxy of this machine "+says) {
				t.Errorf("%s: the answer is\n%s", address, answer)
			}
		}
	}
}

// A target that the other proxy is not for is dialled as ever.
func TestChoosesUpstreamProxyPerTarget(t *testing.T) {
	t.Parallel()
	relay := newRelay(t, echo(t).Listener.Addr(), "", false)
	to := must.Get(url.Parse(relay.URL))(t)
	b := newBench(t, echo(t).Listener.Addr(), func(o *Options) {
		o.Via = func(target reach.Target) *url.URL {
			if target.Name == "api.example.com" {
				return nil
			}
			return to
		}
	})
	if answer := b.raw(viaTunnel); !strings.Contains(answer, "GET /in host=y") || len(relay.requests()) != 1 {
		t.Errorf("asked %q, the answer is\n%s", relay.requests(), answer)
	}
	if answer := b.raw("GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(answer, "GET / host=api.example.com") || len(relay.requests()) != 1 {
		t.Errorf("asked %q, the answer is\n%s", relay.requests(), answer)
	}
	must.Contain(t, b.raw("GET http://private.example.org/ HTTP/1.1\r\nHost: x\r\n\r\n"), "by the proxy")
}

// telltale is a proxy that answers by itself with all that it was sent, as Apache does to
// TRACE, and Squid in the page of an error.
func telltale(t *testing.T, header http.Header, spell func(string) string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, false)
		must.Is(t, nil, err)
		maps.Copy(w.Header(), header)
		w.Header().Set("X-Sent", r.Header.Get("Proxy-Authorization"))
		w.Header().Add(http.TrailerPrefix+"X-Trailer", r.Header.Get("Proxy-Authorization"))
		w.WriteHeader(http.StatusServiceUnavailable)
		shown := spell(string(dump))
		fmt.Fprint(w, "<a href='mailto:?body=", shown[:len(shown)/2])
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, shown[len(shown)/2:], "'>the end")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestHidesUpstreamProxyPassword(t *testing.T) {
	t.Parallel()
	plainly := func(text string) string { return text }
	decoded := func(text string) string {
		_, encoded, _ := strings.Cut(text, "Proxy-Authorization: Basic ")
		encoded, _, _ = strings.Cut(encoded, "\r")
		pair, err := base64.StdEncoding.DecodeString(encoded)
		must.Is(t, nil, err)
		_, password, _ := strings.Cut(string(pair), ":")
		return "you are " + string(pair) + " with " + password
	}
	for _, user := range []string{"octo:hunter2-and-some-more", "octo:a%3F%3Eb", "a-token-without-password", "o%3Ao:p%40ss"} {
		for _, request := range []string{
			"GET http://port.example.net:8443/ HTTP/1.1\r\nHost: x\r\n\r\n",
			"OPTIONS http://port.example.net:8443/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n",
			"HEAD http://port.example.net:8443/ HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			for _, spell := range []func(string) string{plainly, url.PathEscape, url.QueryEscape, html.EscapeString, decoded} {
				to := strings.Replace(telltale(t, nil, spell), "://", "://"+user+"@", 1)
				b := newBench(t, nil, by(t, to, nil))
				answer := b.raw(request)
				address := must.Get(url.Parse(to))(t)
				password, _ := address.User.Password()
				pair := address.User.Username() + ":" + password
				encoded := base64.StdEncoding.EncodeToString([]byte(pair))
				for _, never := range []string{pair, html.EscapeString(pair), encoded, url.QueryEscape(encoded), "Max-Forwards"} {
					must.Lack(t, answer, never)
				}
				if len(password) >= minSecretLength && strings.Contains(answer, password) {
					t.Errorf("%s: commands got the password:\n%s", user, answer)
				}
				if !strings.HasPrefix(answer, "HTTP/1.1 503 ") || request[0] != 'H' && !strings.Contains(answer, "the end") {
					t.Errorf("%s: the answer is\n%s", user, answer)
				}
			}
		}
	}
}

func TestHidesShortPasswordOnlyInHeader(t *testing.T) {
	t.Parallel()
	to := telltale(t, nil, func(text string) string { return text + " YTpi a:b " })
	b := newBench(t, nil, by(t, strings.Replace(to, "://", "://a:b@", 1), nil))
	if answer := b.raw(viaPlain); strings.Contains(answer, "Basic YTpi") || !strings.Contains(answer, " YTpi a:b ") {
		t.Errorf("the answer is\n%s", answer)
	}
}

// What can't be searched is not given on, and nobody is asked for it.
func TestRefusesEncodedUpstreamAnswers(t *testing.T) {
	t.Parallel()
	to := telltale(t, http.Header{"Content-Type": {"text/html"}, "Content-Encoding": {"gzip"}}, func(text string) string {
		must.Contain(t, text, "Accept-Encoding: identity")
		return text
	})
	b := newBench(t, nil, by(t, strings.Replace(to, "://", "://octo:hunter2@", 1), nil))
	if answer := b.raw("GET http://port.example.net:8443/ HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 502 ") || !strings.Contains(answer, "http_response_content_coding") {
		t.Errorf("the answer is\n%s", answer)
	}
}

func TestRefusesTraceByUpstreamProxy(t *testing.T) {
	t.Parallel()
	relay := newRelay(t, echo(t).Listener.Addr(), "", false)
	for _, method := range []string{"TRACE", "trace"} {
		b := newBench(t, nil, by(t, relay.URL, nil))
		answer := b.raw(method + " http://port.example.net:8443/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 403 ") || !strings.Contains(answer, "built-in:trace") || len(relay.requests()) > 0 {
			t.Errorf("asked %q, the answer is\n%s", relay.requests(), answer)
		}
		if told := b.told(); len(b.observed) != 1 || b.observed[0].Allowed || b.observed[0].Via != "" {
			t.Errorf("observed %+v, %q", b.observed, told)
		}
	}
	direct := newBench(t, echo(t).Listener.Addr())
	if answer := direct.raw("TRACE http://api.example.com/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf("without another proxy the answer is\n%s", answer)
	}
}
