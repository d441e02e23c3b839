package reach

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// A person who reads why a request got no answer finds no name of Go in it, and the variable to set.
func TestExplainsRequestsWithoutAnswer(t *testing.T) {
	refuses := func(status int) *url.URL {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(proxy.Close)
		return must.Get(url.Parse(proxy.URL))(t)
	}
	trusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer trusted.Close()
	const closed = "127.0.0.1:1" // a port that was free a moment ago may be another test's by now
	for name, c := range map[string]struct {
		address string
		proxy   *url.URL
		want    string
	}{
		"nobody listens":        {"http://" + closed, nil, closed + ": connection refused"},
		"another authority":     {trusted.URL, nil, "the server's certificate is not trusted: certificate signed by unknown authority; SSL_CERT_FILE can"},
		"no proxy":              {"https://a.example", &url.URL{Scheme: "http", Host: closed}, "the proxy does not answer: " + closed + ": connection refused"},
		"a proxy with users":    {"https://a.example", refuses(http.StatusProxyAuthRequired), "asks for a user and a password (HTTP 407): put them into HTTPS_PROXY"},
		"a proxy that forbids":  {"https://a.example", refuses(http.StatusForbidden), "refuses the connection (HTTP 403 Forbidden)"},
		"an answer that is cut": {"http://" + silent(t), nil, "the connection was closed without an answer"},
	} {
		client := http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return c.proxy, nil }, OnProxyConnectResponse: RefusedByProxy}}
		response, err := client.Get(c.address)
		if err == nil {
			response.Body.Close()
			t.Errorf("%s: an answer came", name)
			continue
		}
		if got := Explain(err.(*url.Error).Err); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	must.Same(t, "a.example: no such host", Explain(&net.OpError{Op: "dial", Err: &net.DNSError{Name: "a.example", Server: "10.0.0.1:53", IsNotFound: true}}))
}

// silent returns the address of a server that closes every connection.
func silent(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			conn.Close()
		}
	}()
	return listener.Addr().String()
}
