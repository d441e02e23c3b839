package forgetest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func TestArtifactsOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddWorkflowRun(6)
	w.repo.AddArtifact(7, forgetest.Artifact{Name: "first", Zip: []byte("PK1")})
	w.repo.AddArtifact(7, forgetest.Artifact{Name: "second", Zip: []byte("PK22"), Expired: true})
	w.repo.AddArtifact(8, forgetest.Artifact{Name: "first"})
	for _, c := range []struct {
		path  string
		count float64
		names []any
	}{
		{"/actions/runs/7/artifacts", 2, []any{"second", "first"}},
		{"/actions/runs/7/artifacts?direction=asc", 2, []any{"first", "second"}},
		{"/actions/runs/7/artifacts?name=first", 1, []any{"first"}},
		{"/actions/runs/7/artifacts?per_page=1&page=2", 2, []any{"first"}},
		{"/actions/runs/6/artifacts", 0, nil},
	} {
		got := w.ask(t, "GET", widgets+c.path, "")
		var names []any
		for _, each := range got.field(t, "artifacts").([]any) {
			names = append(names, each.(map[string]any)["name"])
		}
		if diff := cmp.Diff(c.names, names); diff != "" || got.field(t, "total_count") != c.count {
			t.Errorf("%s: %s\n%s", c.path, diff, got.body)
		}
	}
	for _, path := range []string{"/actions/runs/9/artifacts", "/actions/runs/x/artifacts"} {
		if got := w.ask(t, "GET", widgets+path, ""); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

// Who downloads is known to the API, and to the place of the archive by its address
// alone.
func TestDownloadOfAnArtifact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.repo.AddArtifact(7, forgetest.Artifact{Name: "run", Zip: []byte("PK")})
	gone := w.repo.AddArtifact(7, forgetest.Artifact{Name: "old", Expired: true})
	away := w.repo.AddArtifact(7, forgetest.Artifact{Name: "away", At: "https://store.example.invalid/x"})
	path := func(id int64, format string) string {
		return fmt.Sprintf("%s/actions/artifacts/%d/%s", widgets, id, format)
	}
	for name, status := range map[string]int{path(gone, "zip"): 410, path(id, "tar"): 404, path(1<<40, "zip"): 404} {
		if got := w.ask(t, "GET", name, ""); got.status != status {
			t.Errorf("%s: %d, want %d", name, got.status, status)
		}
	}
	if got := w.askAs(t, "", "GET", path(id, "zip"), ""); got.status != 401 {
		t.Errorf("nobody is let in: %d", got.status)
	}
	for id, want := range map[int64]string{id: w.URL + "/store/", away: "https://store.example.invalid/x"} {
		if got := w.redirect(t, path(id, "zip")); !strings.HasPrefix(got, want) {
			t.Errorf("it leads to %q, not %q", got, want)
		}
	}
	if got := w.send(t, "", "GET", w.redirect(t, path(id, "zip")), ""); string(got.body) != "PK" {
		t.Errorf("the archive is %q", got.body)
	}
	if got := w.send(t, "Bearer "+w.Token, "GET", w.URL+"/store/artifacts/1.zip", ""); got.status != 403 {
		t.Errorf("an address that was not given: %d", got.status)
	}
}

// redirect is where a call of the API leads to.
func (w *world) redirect(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", w.APIURL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.Token)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusFound {
		t.Fatalf("%s: %d", path, response.StatusCode)
	}
	return response.Header.Get("Location")
}
