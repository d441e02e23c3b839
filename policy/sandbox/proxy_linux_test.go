package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
)

// openHost is listed, and answers where the internet is one server.
const openHost = "open.example.org"

// serve starts a proxy for an internet of one server, in which every listed name
// resolves to address. It is what the product has but for resolving and dialling.
func serve(address, internet string, listed ...string) func(net.Listener) func() {
	return func(l net.Listener) func() {
		list, err := reach.ParseList(append(listed, openHost, openHost+":80"))
		orPanic(err)
		p := proxy.Start(l, proxy.Options{
			Hosts:   policy.Hosts{List: list, Key: "policy.network"},
			Observe: func(proxy.Request) error { return nil },
			Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
				if name == openHost {
					return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
				}
				return []netip.Addr{netip.MustParseAddr(address)}, nil
			},
			Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", internet)
			},
		})
		return p.Close
	}
}

// serveProxy is a proxy whose list has names that lead to the machine itself.
func serveProxy(w attempts.World) func(net.Listener) func() {
	return func(l net.Listener) func() {
		internet := httptest.NewServer(http.NotFoundHandler())
		port := fmt.Sprintf(":%d", w.TCP)
		stop := serve("127.0.0.1", internet.Listener.Addr().String(), "inside.example.org"+port, "*.rebound.example.org"+port)(l)
		return func() {
			stop()
			internet.Close()
		}
	}
}

// proxyAttempts are ways around the proxy or through it. What it does not refuse
// counts as reached.
func proxyAttempts() []attempts.Attempt {
	connect := func(name, host string) attempts.Attempt {
		return attempts.Attempt{Name: name, Do: func(w attempts.World) error {
			return turnedAway(fmt.Sprintf("CONNECT %s:%d HTTP/1.1\r\nHost: x\r\n\r\n", host, w.TCP))
		}}
	}
	return []attempts.Attempt{
		connect("connect to the machine's loopback through the proxy", "127.0.0.1"),
		connect("the same by its name", "localhost"),
		connect("the same by its name with a dot", "localhost."),
		connect("the same by IPv6", "[::1]"),
		connect("the same by a mapped address", "[::ffff:127.0.0.1]"),
		connect("the same by a mapped address in hexadecimal", "[::ffff:7f00:1]"),
		connect("the same by NAT64", "[64:ff9b::7f00:1]"),
		connect("the same by the address of nobody", "0.0.0.0"),
		connect("the same by a decimal number", "2130706433"),
		connect("the same by a hexadecimal number", "0x7f000001"),
		connect("the same by octal numbers", "0177.0.0.01"),
		connect("the same by two numbers", "127.1"),
		connect("the same by another address of the block", "127.99.0.1"),
		connect("the same by a name that is listed", "inside.example.org"),
		connect("the same by a name below one that is listed", "a.rebound.example.org"),
		connect("the same behind a user's name", openHost+"@127.0.0.1"),
		connect("the host's name server through the proxy", "127.0.0.53"),
		connect("another port of a listed host", openHost),
		{Name: "the same by an absolute request", Do: func(w attempts.World) error {
			return turnedAway(fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: %s\r\n\r\n", w.TCP, openHost))
		}},
		{Name: "the metadata service through the proxy", Do: func(attempts.World) error {
			return turnedAway("GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")
		}},
		{Name: "a host that is not listed", Do: func(attempts.World) error {
			return turnedAway("CONNECT evil.example.com:443 HTTP/1.1\r\nHost: " + openHost + "\r\n\r\n")
		}},
		{Name: "a second request behind one that is let through", Do: func(attempts.World) error {
			return turnedAway("GET http://"+openHost+"/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://evil.example.com/ HTTP/1.1\r\nHost: "+openHost+"\r\n\r\n")
		}},
		{Name: "the metadata service past the proxy", Do: func(attempts.World) error { return attempts.Dial("tcp4", "169.254.169.254:80") }},
		{Name: "a host past the proxy", Do: func(attempts.World) error { return attempts.Dial("tcp4", "192.0.2.1:443") }},
		{Name: "a name server past the proxy", Do: func(attempts.World) error { return lookUp() }},
		{Name: "the proxy by SOCKS", Do: bySOCKS},
		{Name: "take the proxy's port", Do: func(attempts.World) error { return takePort(unix.SO_REUSEADDR) }},
		{Name: "share the proxy's port", Do: func(attempts.World) error { return takePort(unix.SO_REUSEPORT) }},
		{Name: "find the proxy's listener in a process", Do: findListener},
	}
}

var errTurnedAway = errors.New("turned away")

// ask sends requests over one connection to the proxy and returns the status
// line of the last answer. A proxy that does not answer is no refusal.
func ask(requests ...string) string {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ProxyPort))
	orPanic(err)
	defer conn.Close()
	answers, status := bufio.NewReader(conn), ""
	for _, request := range requests {
		_, err := io.WriteString(conn, request)
		orPanic(err)
		response, err := http.ReadResponse(answers, nil)
		orPanic(err)
		_, err = io.Copy(io.Discard, response.Body)
		orPanic(err)
		status = response.Status
	}
	return status
}

// turnedAway is an error where the last of some requests is refused, and the
// others are let through.
func turnedAway(requests ...string) error {
	if status := ask(requests...); !strings.HasPrefix(status, "403 ") {
		return nil
	}
	return errTurnedAway
}

func lookUp() error {
	resolver := net.Resolver{PreferGo: true}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := resolver.LookupHost(ctx, "example.com")
	return err
}

func bySOCKS(w attempts.World) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ProxyPort))
	orPanic(err)
	defer conn.Close()
	_, err = conn.Write([]byte{5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, byte(w.TCP >> 8), byte(w.TCP), '\r', '\n', '\r', '\n'})
	orPanic(err)
	answer := make([]byte, 2)
	if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 5 {
		return errTurnedAway
	}
	return nil
}

func takePort(option int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	return unix.Listen(fd, 1)
}

// findListener looks for the listener's inode among all descriptors that can be
// seen.
func findListener(attempts.World) error {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return err
	}
	var inode string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 9 && fields[1] == fmt.Sprintf("0100007F:%04X", ProxyPort) && fields[3] == "0A" {
			inode = fields[9]
		}
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	orPanic(err)
	for _, link := range links {
		if target, _ := os.Readlink(link); target == "socket:["+inode+"]" {
			return nil
		}
	}
	return attempts.ErrNothing
}

// TestNothingGetsOutByProxy makes the attempts that do not depend on a proxy.
func TestNothingGetsOutByProxy(t *testing.T) {
	noneEscapesTiers(t, func(o *outer) { o.Proxied = true })
}

// noneEscapesTiers makes the attempts in each tier with namespaces, as each user, in a changed world.
func noneEscapesTiers(t *testing.T, change func(o *outer)) {
	for _, tier := range namespacedTiers {
		for name, user := range sandboxtest.Users(t) {
			t.Run(tier+"/"+name, func(t *testing.T) {
				requireTier(t, tier)
				o := newWorld(t, tier, user)
				change(&o)
				noneEscapes(t, o, tier, user)
			})
		}
	}
}

// fetchVariable makes the test binary a program that fetches addresses by the
// library's client, as its environment says; "self" is a server of its own.
const fetchVariable = "SANDBOX_TEST_FETCH"

func runFetch() {
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "served by itself") }))
	for address := range strings.FieldsSeq(os.Getenv(fetchVariable)) {
		if address == "self" {
			address = own.URL
		}
		response, err := http.Get(address)
		if err != nil {
			fmt.Println(err)
			continue
		}
		_, err = io.Copy(os.Stdout, response.Body)
		orPanic(err)
		orPanic(response.Body.Close())
	}
	os.Exit(0)
}

// proxied opens a sandbox with a proxy to an internet of one server.
func proxied(t *testing.T, tier string) (*Sandbox, Options) {
	t.Helper()
	internet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s is here\n", r.Host)
	}))
	t.Cleanup(internet.Close)
	return confined(t, tier, func(o *Options) {
		o.Network, o.Serve = NetworkProxied, serve("127.0.0.1", internet.Listener.Addr().String())
	})
}

func TestCommandsReachListedHosts(t *testing.T) {
	self := must.Get(os.Executable())(t)
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		box, o := proxied(t, tier)
		var output strings.Builder
		status, err := box.Run(t.Context(), Command{
			Argv: []string{self}, Dir: o.Workspace, Output: &output,
			Env: []string{fetchVariable + "=http://open.example.org/ http://evil.example.com/ https://evil.example.com/ self", "HTTP_PROXY=http://proxy.of.the.machine.example", "no_proxy=*"},
		})
		if err != nil || status.ExitCode != 0 {
			t.Fatalf("%+v, %v: %s", status, err, output.String())
		}
		must.Contain(t, output.String(),
			"open.example.org is here\n", `agent-ci refused to reach "evil.example.com:80" by http. No rule allows it`,
			"Refused by agent-ci (no rule allows it): evil.example.com:443", "served by itself\n",
		)
		if layers := strings.Join(box.Layers(), ", "); !strings.Contains(layers, "proxy") || !strings.Contains(layers, "net)") {
			t.Errorf("the layers are %s", layers)
		}
	})
}

func TestCommandsFindProxy(t *testing.T) {
	box, o := proxied(t, "namespaces")
	got := run(t, box, o, `env | grep -i _proxy | sort`)
	const address = "http://127.0.0.1:3128"
	want := fmt.Sprintf("ALL_PROXY=%[1]s\nHTTPS_PROXY=%[1]s\nHTTP_PROXY=%[1]s\nNODE_USE_ENV_PROXY=1\nNO_PROXY=localhost,127.0.0.1,::1\nall_proxy=%[1]s\nhttp_proxy=%[1]s\nhttps_proxy=%[1]s\nno_proxy=localhost,127.0.0.1,::1\n", address)
	must.Same(t, sorted(want), sorted(got), got)
	plain, o := confined(t, "namespaces", nil)
	must.Same(t, "none\n", run(t, plain, o, `env | grep -i _proxy || echo none`), "without a list there")
}

func TestHostListRequiresNetworkNamespace(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"landlock alone": func(o *Options) { o.disabledLayers = []string{layerNamespaces} },
		"no confinement": func(o *Options) { o.Mode = grants.DangerFullAccess },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.Network, o.Serve = NetworkProxied, func(net.Listener) func() { t.Error("it serves"); return func() {} }
			change(&o)
			_, err := Open(t.Context(), o)
			var unavailable *UnavailableError
			if !errors.As(err, &unavailable) || !strings.Contains(unavailable.Remedy, "list of hosts") || !strings.Contains(unavailable.Remedy, "full") {
				t.Errorf("error %v", err)
			}
		})
	}
	o := newOptions(t)
	o.Network = NetworkProxied
	must.Fail(t, "", must.Err(Open(t.Context(), o)), "it opens without anybody who serves")
}

func sorted(lines string) string {
	all := strings.Split(strings.TrimSpace(lines), "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}
