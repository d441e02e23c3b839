package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
)

var machineProxyCommands = map[string]func(*testscript.TestScript, bool, []string){
	"machineproxy": usage("[USER:PASSWORD]", startMachineProxy),
	"proxied":      usage("", showProxied),
}

// machineProxy is the proxy by which a machine reaches the internet, of which all hosts
// are one server that tells what it was asked.
type machineProxy struct {
	user string // user:password, empty for none
	host *httptest.Server

	mu    sync.Mutex
	asked []string
}

// startMachineProxy has the environment of agent-ci name a proxy of this machine, whose
// host and port PROXY_AT has: machineproxy [USER:PASSWORD].
func startMachineProxy(ts *testscript.TestScript, args []string) {
	p := &machineProxy{user: strings.Join(args, "")}
	p.host = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "asked for %s of %s", r.URL.Path, r.Host)
	}))
	ts.Defer(p.host.Close)
	server := httptest.NewServer(p)
	ts.Defer(server.Close)
	address := &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	if name, password, secured := strings.Cut(p.user, ":"); secured {
		address.User = url.UserPassword(name, password)
	}
	ts.Setenv("HTTPS_PROXY", address.String())
	ts.Setenv("HTTP_PROXY", address.String())
	ts.Setenv("PROXY_AT", address.Host)
	worldOf(ts).proxy = p
}

// showProxied prints what the proxy was asked for: proxied.
func showProxied(ts *testscript.TestScript, _ []string) {
	p := worldOf(ts).proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(ts.Stdout(), strings.Join(p.asked, "\n"))
}

func (p *machineProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.mu.Unlock()
	name, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	switch {
	case p.user != "" && name+":"+password != p.user:
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		proxytest.Tunnel(w, p.host.Listener.Addr().String())
	default:
		fmt.Fprintf(w, "asked for %s by the proxy", r.RequestURI)
	}
}
