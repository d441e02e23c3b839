package sandbox

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/proxy"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
)

// What commands have in place of attempts.Secret.
const (
	hostVariable    = "CANARY_PLACEHOLDER"
	hostPlaceholder = "stands-for-what-is-outside"
	gitPlaceholder  = "stands-for-git-of-the-host"
)

// hasHost has a host in the world that secrets of commands are for, and that answers.
func (o *outer) hasHost(t *testing.T) {
	t.Helper()
	o.World.Host, o.World.Placeholder = "registry.siege.example", hostVariable
	internet := proxytest.Start(t, map[string]http.Handler{o.World.Host + ":443": http.HandlerFunc(attempts.ServeHost)})
	o.Internet, o.Vouching = internet.Proxy, filepath.Join(filepath.Dir(o.World.Workspace), "vouching.pem")
	put(t, o.Vouching, string(internet.Authority), 0o644)
	if o.World.Bare {
		o.World.Proxy, o.World.Trust = o.Internet, o.Vouching
	}
}

// serveHost is the proxy of commands with secrets for the world's Host. It writes down
// what they are to trust.
func (o *outer) serveHost() func(net.Listener) func() {
	set := credential.Set{
		{Name: "HEADER", Placeholder: hostPlaceholder, Header: "Authorization", Methods: []string{http.MethodGet}},
		{Name: "GIT", Placeholder: gitPlaceholder, Header: "Authorization", Fetch: true},
	}
	for i, path := range []string{attempts.PathOfHost, attempts.RepositoryOfHost} {
		scope, err := credential.ParseScope(o.World.Host + path)
		orPanic(err)
		set[i].Value, set[i].Scopes = attempts.Secret, []credential.Scope{scope}
	}
	run, err := authority.New(set.Hosts())
	orPanic(err)
	o.World.Trust = filepath.Join(o.World.Outside, "trusted.pem")
	orPanic(os.WriteFile(o.World.Trust, run.Certificate(), 0o644))
	vouching, err := os.ReadFile(o.Vouching)
	orPanic(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(vouching)
	via, err := url.Parse(o.Internet)
	orPanic(err)
	return func(l net.Listener) func() {
		return proxy.Start(l, proxy.Options{
			Hosts: policy.Hosts{Key: "policy.network", Credentials: set}, Observe: func(proxy.Request) error { return nil },
			Via: func(reach.Target) *url.URL { return via }, Authority: run, Roots: func(reach.Target) *x509.CertPool { return roots },
		}).Close
	}
}

// The host of a secret gets what the secret is for alone.
func TestNothingMisusesSecretHost(t *testing.T) {
	user := os.Getuid()
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		requireTier(t, tier)
		o := newWorld(t, tier, user)
		o.hasHost(t)
		o.Served = true
		sandboxtest.Give(t, filepath.Dir(o.World.Workspace), user)
		noneEscapes(t, o, tier, user)
	})
}

// Where nothing holds, the host answers each of them.
func TestSecretHostAnswersUnguardedAttempts(t *testing.T) {
	o := newWorld(t, "none", os.Getuid())
	o.World.Bare, o.Served = true, true
	o.hasHost(t)
	allEscape(t, o, os.Getuid())
}
