package github

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A server that is asked for an archive leads nobody to what only this machine or its
// network reaches, by whatever name, unless it is there itself.
func TestNoArchiveComesFromWithin(t *testing.T) {
	asked := 0
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer inside.Close()
	port := inside.URL[strings.LastIndexByte(inside.URL, ':'):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00:ec2::254]", "0.0.0.0"} {
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

func fetchBy(t *testing.T, api string, place *url.URL) error {
	t.Helper()
	client, err := New(Options{APIURL: api, Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return client.fetchArchive(t.Context(), place, "", io.Discard, 1)
}
