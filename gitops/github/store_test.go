package github

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/transport"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A server that is asked for an archive leads nobody to what only this machine or its
// network reaches, by whatever name, unless it is there itself.
func TestRefusesArchiveFromPrivateAddress(t *testing.T) {
	asked := 0
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer inside.Close()
	port := inside.URL[strings.LastIndexByte(inside.URL, ':'):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00:ec2::254]", "0.0.0.0",
		"100.100.100.200", "192.0.0.192", "198.18.0.1", "240.0.0.1", "168.63.129.16", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::1]", "[2001:0:7f00:1::1]", "[fec0::1]",
	} {
		place := &url.URL{Scheme: "https", Host: host + port, Path: "/latest"}
		err := fetchBy(t, "https://9.9.9.9/api/v3", place) // which nobody calls
		if !errors.As(err, new(*origin.RedirectError)) || !strings.Contains(err.Error(), "of this machine or its network") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := fetchBy(t, "https://127.0.0.1/api/v3", &url.URL{Scheme: "https", Host: "localhost" + port}); !transport.IsCertificateError(err) {
		t.Errorf("an archive beside the API: %v", err)
	}
	must.Same(t, 0, asked, "what is inside was asked")
}

func TestPublicAddresses(t *testing.T) {
	for _, address := range []string{"9.9.9.9", "64:ff9b::9.9.9.9", "2606:4700::1", "::ffff:9.9.9.9"} {
		if addr := netip.MustParseAddr(address); !isPublic(addr) {
			t.Errorf("%s is not public", address)
		}
	}
	must.Same(t, false, isPublic(netip.Addr{}), "no address is public")
}

func fetchBy(t *testing.T, api string, place *url.URL) error {
	t.Helper()
	client := must.Get(New(Options{APIURL: api, Token: "x"}))(t)
	return client.fetchArchive(t.Context(), place, "", io.Discard, 1)
}
