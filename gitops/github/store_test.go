package github

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// A server that is asked for an archive leads nobody to what only this machine or its
// network reaches, by whatever name, unless it is there itself.
func TestNoArchiveComesFromWithin(t *testing.T) {
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
		if !errors.As(err, new(*redirectError)) || !strings.Contains(err.Error(), "of this machine or its network") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := fetchBy(t, "https://127.0.0.1/api/v3", &url.URL{Scheme: "https", Host: "localhost" + port}); !certificateError(err) {
		t.Errorf("an archive beside the API: %v", err)
	}
	if asked > 0 {
		t.Errorf("what is inside was asked %d times", asked)
	}
}

// Two lists say which addresses are the public internet's, as neither package may import the other.
func TestPublicAddressesAreThoseThatCommandsReach(t *testing.T) {
	text, err := os.ReadFile("../../policy/reach/address.go")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, quoted := range regexp.MustCompile(`"[0-9a-f:.]+/[0-9]+"`).FindAllString(string(text), -1) {
		block := netip.MustParsePrefix(strings.Trim(quoted, `"`)).Masked()
		for _, addr := range []netip.Addr{block.Addr().Prev(), block.Addr(), block.Addr().Next(), last(block), last(block).Next()} {
			if tried++; addr.IsValid() && public(addr) != (reach.Inside(addr) == "") {
				t.Errorf("%s is public: %v; for commands it is %q", addr, public(addr), reach.Inside(addr))
			}
		}
	}
	for _, address := range []string{"9.9.9.9", "64:ff9b::9.9.9.9", "2606:4700::1", "::ffff:9.9.9.9"} {
		if addr := netip.MustParseAddr(address); !public(addr) {
			t.Errorf("%s is not public", address)
		}
	}
	if tried < 100 {
		t.Errorf("%d addresses were tried", tried)
	}
}

// last returns the last address of a block.
func last(block netip.Prefix) netip.Addr {
	bytes := block.Addr().AsSlice()
	for i := block.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

func fetchBy(t *testing.T, api string, place *url.URL) error {
	t.Helper()
	client, err := New(Options{APIURL: api, Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return client.fetchArchive(t.Context(), place, "", io.Discard, 1)
}
