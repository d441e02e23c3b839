package main_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
)

var registryCommands = map[string]func(*testscript.TestScript, bool, []string){
	"client":   usage("", placeHelper("client")),
	"registry": usage("TOKEN FILE HOST...", startRegistry),
	"served":   usage("", showServed),
}

// registry is all hosts that the machine reaches, by TLS with an authority of its own and
// through the machine's proxy: it lets in who has the token.
type registry struct {
	token string

	mu     sync.Mutex
	served []string
}

// startRegistry starts the hosts that are named, has agent-ci find them through
// HTTPS_PROXY, and writes down who vouches for them: registry TOKEN FILE HOST...
func startRegistry(ts *testscript.TestScript, args []string) {
	vouching, err := authority.New(args[2:])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), vouching.Certificate(), 0o644))
	r := &registry{token: args[0]}
	host := httptest.NewUnstartedServer(r)
	host.TLS = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return vouching.Leaf(hello.ServerName) }}
	host.StartTLS()
	ts.Defer(host.Close)
	machine := httptest.NewServer(leadingTo(host.Listener.Addr().String()))
	ts.Defer(machine.Close)
	ts.Setenv("HTTPS_PROXY", machine.URL)
	ts.Setenv("HTTP_PROXY", machine.URL)
	worldOf(ts).registry = r
}

// showServed prints what the hosts were asked, and whether they let it in: served.
func showServed(ts *testscript.TestScript, _ []string) {
	r := worldOf(ts).registry
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(ts.Stdout(), strings.Join(r.served, "\n"))
}

func (r *registry) ServeHTTP(w http.ResponseWriter, asked *http.Request) {
	_, password, _ := asked.BasicAuth()
	given := []string{strings.TrimPrefix(asked.Header.Get("Authorization"), "Bearer "), asked.URL.Query().Get("key"), password}
	verdict, status := "let in", http.StatusOK
	if !slices.Contains(given, r.token) {
		verdict, status = "not let in", http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="the registry"`) // some clients wait for it
	}
	r.mu.Lock()
	r.served = append(r.served, fmt.Sprintf("%s %s%s: %s", asked.Method, asked.Host, asked.URL.Path, verdict))
	r.mu.Unlock()
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s by %s, with %q", verdict, asked.Host, given[0])
}

// leadingTo is a proxy by which every host is at one address.
func leadingTo(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, asked *http.Request) {
		if asked.Method != http.MethodConnect {
			http.Error(w, "tunnels alone", http.StatusForbidden)
			return
		}
		proxytest.Tunnel(w, address)
	}
}
