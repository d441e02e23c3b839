package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// A host that answers at once takes no body, so that a short one has to be searched before
// the host is asked.
func TestSearchesBodyBeforeEarlyAnswer(t *testing.T) {
	t.Parallel()
	early := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "an early answer") }
	eachProtocol(t, func(t *testing.T, h2 bool) {
		var asked atomic.Int32
		h := holding(t, h2, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); early(w, r) })
		for i, body := range []string{"x=" + placeholder, strings.Repeat("x", maxSearchedFirst-len(placeholder)) + placeholder} {
			for range 20 {
				response, text := get(t, h.client(h2), "POST", "https://npm.example.org/team/a", strings.NewReader(body), "Authorization", bearer)
				if response.StatusCode != http.StatusForbidden || !strings.Contains(text, "is in the body") {
					t.Fatalf("with the %d. body the answer is %s: %s", i, response.Status, text)
				}
			}
		}
		if got := h.refusals(); len(got) != 40 || asked.Load() > 0 || len(h.used) > 0 {
			t.Errorf("%d refusals, the host was asked %d times, used %q", len(got), asked.Load(), h.used)
		}
	})
	server := httptest.NewServer(http.HandlerFunc(early))
	t.Cleanup(server.Close)
	h := holding(t, false, nil, plainly(t, server))
	for range 20 {
		request := fmt.Sprintf("POST http://plain.example.org/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n1=%s", 2+len(placeholder), placeholder)
		if answer := h.bench.raw(request); !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
			t.Fatalf("over plain http the answer is %s", answer)
		}
	}
}

// plainly opens plain.example.org, which is a server.
func plainly(t *testing.T, server *httptest.Server) func(*Options) {
	return func(o *Options) {
		o.Hosts.List = must.Get(reach.ParseList([]string{"plain.example.org"}))(t)
		o.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}
	}
}

// A host that answers at once and does not end its answer: the search goes on.
func TestSearchesBodyAfterAnswer(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		for _, status := range []int{http.StatusOK, http.StatusUnauthorized} {
			if inside && status != http.StatusOK {
				continue // the library's client sends no more then
			}
			for name, begin := range map[string]int{"a long body": 1 << 20, "a body of any length": 10} {
				t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
					stop := make(chan struct{})
					defer close(stop)
					h := holding(t, outside, standing(status, stop))
					searchedLate(t, h, h.client(inside), "https://npm.example.org/team/a", begin)
				})
			}
		}
	})
}

func TestSearchesPlainHTTPBodyAfterAnswer(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(standing(http.StatusUnauthorized, stop))
	t.Cleanup(server.Close)
	defer close(stop)
	h := holding(t, false, nil, plainly(t, server))
	searchedLate(t, h, h.client(false), "http://plain.example.org/", 1<<20)
}

// standing answers before it has read all, and stands still then.
func standing(status int, stop <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, 1))
		w.WriteHeader(status)
		fmt.Fprint(w, "an early answer")
		_ = http.NewResponseController(w).Flush()
		<-stop
	}
}

// searchedLate sends a placeholder when the answer has begun, which is broken off then.
func searchedLate(t *testing.T, h *held, client *http.Client, address string, begin int) {
	t.Helper()
	rest, send := io.Pipe()
	defer rest.Close()
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", address, io.MultiReader(bytes.NewReader(make([]byte, begin)), rest)))(t)
	response := must.Get(client.Do(r))(t)
	defer response.Body.Close()
	text := make([]byte, len("an early answer"))
	must.Do(t, must.Err(io.ReadFull(response.Body, text)), "after", text)
	go func() { // the answer's end may come before all of it is read
		_, _ = io.WriteString(send, "x="+placeholder)
		_ = send.Close()
	}()
	must.Fail(t, "", must.Err(io.ReadAll(response.Body)), "the answer")
	if got := h.refusals(); len(got) != 1 || !strings.Contains(got[0], "is in the body") {
		t.Errorf("recorded is %q", got)
	}
}

// What the host still reads when its answer has begun comes whole.
func TestForwardsWholeBodyAfterAnswer(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	plain := holding(t, false, nil, plainly(t, server))
	alone := holding(t, false, nil, plainly(t, server), func(o *Options) { o.Hosts.Credentials = nil })
	outside, inside := holding(t, false, answer), holding(t, true, answer)
	for name, way := range map[string]struct {
		conn   func() net.Conn
		target string
	}{
		"HTTP/1":                  {func() net.Conn { return outside.over("npm.example.org:443") }, "/team/a"},
		"h2":                      {func() net.Conn { return inside.over("npm.example.org:443") }, "/team/a"},
		"plain":                   {func() net.Conn { return dial(t, plain.address) }, "http://plain.example.org/"},
		"plain, where no secrets": {func() net.Conn { return dial(t, alone.address) }, "http://plain.example.org/"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := way.conn()
			defer conn.Close()
			part := "3e8\r\n" + strings.Repeat("x", 1000) + "\r\n"
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: npm.example.org\r\nAuthorization: Bearer mine\r\nTransfer-Encoding: chunked\r\n\r\n%s", way.target, part)
			response := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			fmt.Fprint(conn, strings.Repeat(part, 9), "0\r\n\r\n")
			must.Same(t, "10000 <nil>", string(must.Get(io.ReadAll(response.Body))(t)), response.Status)
		})
	}
}

// A trailer is announced by its name, before there is a value to search.
func TestDropsTrailerNamedBySecret(t *testing.T) {
	t.Parallel()
	const value, holder = "0123456789abcdef0123456789abcdef", "agentci0aaaaaaaaaaaaaaaaaaaaaaaa"
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		h := holding(t, outside, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			fmt.Fprint(w, "the answer")
		}, func(o *Options) {
			o.Hosts.Credentials = append(o.Hosts.Credentials, made(t, credential.Credential{Name: "HEX", Value: value, Placeholder: holder, Header: "Authorization", Methods: []string{"GET"}}, "npm.example.org/team"))
		})
		response, text := get(t, h.client(inside), "GET", "https://npm.example.org/team/a", nil, "Authorization", "Bearer "+holder)
		if len(response.Trailer) > 0 || text != "the answer" {
			t.Errorf("the answer is %q with the trailer %v", text, response.Trailer)
		}
	})
}

// A reader that outlives its exchange does not end the next one on the connection.
func TestLateReadKeepsIdleTimerStopped(t *testing.T) {
	t.Parallel()
	p := &Proxy{limits: defaultLimits}
	idle := p.newIdleTimer(func() {})
	late := p.watchedReader(strings.NewReader("it comes late"), idle)
	idle.stop()
	must.Get(io.ReadAll(late))(t)
	must.Same(t, false, idle.timer.Stop(), "it waits again")
}

// Headers are held for all requests that wait, so that both are bounded.
func TestBoundsHeadersInside(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		h := holding(t, outside, func(http.ResponseWriter, *http.Request) {})
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", "https://npm.example.org/team/a", nil))(t)
		r.Header.Set("X-Long", strings.Repeat("x", 48<<10))
		response, err := h.client(inside).Do(r)
		if err != nil && inside { // the client is told the bound, or the connection ends
			return
		}
		must.Do(t, err)
		defer response.Body.Close()
		must.Same(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode, "a long header", response.Status)
	})
}
