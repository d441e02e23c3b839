package github_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

const most = 1 << 10

// shop is a repository with artifacts, and a client that may read them.
type shop struct {
	*forgetest.Forge
	repo   *forgetest.Repository
	client *github.Client
}

func newShop(t *testing.T) shop {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{Token: token})
	return shop{f, f.AddRepository("octo", "widgets"), newClient(t, f.APIURL, token)}
}

// only is the one artifact of run 7.
func (s shop) only(t *testing.T) github.Artifact {
	t.Helper()
	all, err := s.client.Artifacts(t.Context(), "octo/widgets", 7)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func (s shop) download(t *testing.T) (string, error) {
	t.Helper()
	var got bytes.Buffer
	err := s.client.DownloadArtifact(t.Context(), "octo/widgets", s.only(t), &got, most)
	return got.String(), err
}

func TestListsArtifacts(t *testing.T) {
	s := newShop(t)
	for i := range 205 {
		s.repo.AddArtifact(7, forgetest.Artifact{Name: fmt.Sprint("a", i), Expired: i == 204})
	}
	all, err := s.client.Artifacts(t.Context(), "octo/widgets", 7)
	if err != nil || len(all) != 205 || all[0].Name != "a204" || !all[0].Expired || all[204].Expired {
		t.Errorf("%d, %v", len(all), err)
	}
	must.Same(t, forge.NotFound, forge.KindOf(must.Err(s.client.Artifacts(t.Context(), "octo/widgets", 8))), "a run that is not there")
	must.Same(t, forge.Invalid, forge.KindOf(must.Err(s.client.Artifacts(t.Context(), "octo/../x", 8))), "a repository that is none")
}

// newStore starts a server beside the API. The test fails if it learns anything of who asks.
func newStore(t *testing.T, serve http.HandlerFunc) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		for _, name := range []string{"Authorization", "Cookie", "Referer", "X-Github-Api-Version"} {
			must.Same(t, "", r.Header.Get(name), r.URL.Path, name)
		}
		serve(w, r)
	}))
	t.Cleanup(store.Close)
	return store.URL, asked
}

// The store of archives is another host: it learns nothing of who asks, wherever it
// leads to in turn.
func TestSendsNoTokenToStore(t *testing.T) {
	store, asked := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/second", http.StatusFound)
			return
		}
		fmt.Fprint(w, "PK")
	})
	s := newShop(t)
	s.repo.AddArtifact(7, forgetest.Artifact{Name: "run", Zip: []byte("PK"), At: store + "/first?sig=secret"})
	if got, err := s.download(t); got != "PK" || err != nil || len(*asked) != 2 {
		t.Errorf("%q, %v, asked %q", got, err, *asked)
	}
}

func TestRefusesArchives(t *testing.T) {
	store, _ := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://store.example.invalid/?sig=secret", http.StatusFound)
		case "/gone":
			http.Error(w, "no", http.StatusForbidden)
		case "/endless":
			for range 100 {
				_, _ = w.Write(make([]byte, most))
				w.(http.Flusher).Flush()
			}
		}
	})
	for name, c := range map[string]struct {
		artifact forgetest.Artifact
		words    string
	}{
		"one that is not kept":     {forgetest.Artifact{Expired: true}, "not kept any more"},
		"one that is too large":    {forgetest.Artifact{Zip: make([]byte, most+1)}, "more than"},
		"one without end":          {forgetest.Artifact{At: store + "/endless"}, "more than"},
		"another than was told":    {forgetest.Artifact{Zip: []byte("PK"), At: store + "/other"}, "not what the API tells the digest of"},
		"one that leads in rounds": {forgetest.Artifact{At: store + "/loop?sig=secret"}, "more than five"},
		"one in the clear":         {forgetest.Artifact{At: "http://store.example.invalid/?sig=secret"}, "no https address"},
		"one that leads there":     {forgetest.Artifact{At: store + "/away?sig=secret"}, "no https address"},
		"a file":                   {forgetest.Artifact{At: "file:///etc/passwd"}, "no https address"},
		"one with a user":          {forgetest.Artifact{At: "https://user:pass@store.example.invalid/?sig=secret"}, "names a user"},
		"one that is refused":      {forgetest.Artifact{At: store + "/gone?sig=secret"}, "answered 403"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.repo.AddArtifact(7, c.artifact)
			got, err := s.download(t)
			if err == nil || !strings.Contains(err.Error(), c.words) || len(got) > most+1 {
				t.Errorf("%d bytes, %v; want %q", len(got), err, c.words)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), token)) {
				t.Errorf("it tells a secret: %v", err)
			}
		})
	}
}

// A repository with another name now is found there, by the same server.
func TestFindsArtifactOfRenamedRepository(t *testing.T) {
	store, _ := newStore(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "PK") })
	api := newAPI(t, map[string]http.HandlerFunc{
		"GET /repos/o/r/actions/artifacts/3/zip": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/api/v3/repositories/9/actions/artifacts/3/zip", http.StatusMovedPermanently)
		},
		"GET /repositories/9/actions/artifacts/3/zip": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, store, http.StatusFound)
		},
	})
	var got bytes.Buffer
	if err := api.client.DownloadArtifact(t.Context(), "o/r", github.Artifact{ID: 3}, &got, most); err != nil || got.String() != "PK" {
		t.Errorf("%q, %v", got.String(), err)
	}
}
