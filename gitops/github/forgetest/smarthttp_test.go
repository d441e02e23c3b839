package forgetest_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// url is the address of a repository with a token in it, as nothing but a test
// may have it.
func (w *world) url(name, token string) string {
	address := w.URL + "/octo/" + name + ".git"
	if token == "" {
		return address
	}
	return strings.Replace(address, "http://", "http://x-access-token:"+token+"@", 1)
}

func TestClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	private := w.AddRepository("octo", "private")
	private.Private = true
	w.git(t, "push", "--quiet", private.Dir, "main")

	for _, c := range []struct {
		name, url string
		works     bool
	}{
		{"public", w.url("widgets", ""), true},
		{"without .git", w.URL + "/octo/widgets", true},
		{"public with the token", w.url("widgets", w.Token), true},
		{"public with a wrong token, for which git is not asked", w.url("widgets", "wrong"), true},
		{"private", w.url("private", ""), false},
		{"private with the token", w.url("private", w.Token), true},
		{"private with a wrong token", w.url("private", "wrong"), false},
		{"unknown", w.url("unknown", w.Token), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			out, err := w.tryGit(t, "clone", "--quiet", c.url, dir)
			if (err == nil) != c.works {
				t.Fatalf("clone: %v\n%s", err, out)
			}
			if c.works && w.git(t, "-C", dir, "rev-parse", "HEAD") != w.git(t, "rev-parse", "main") {
				t.Error("the clone is not at main")
			}
		})
	}
}

// TestTokenSentUnasked is how a checkout of Actions authenticates.
func TestTokenSentUnasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for token, works := range map[string]bool{w.Token: true, "wrong": false} {
		basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
		out, err := w.tryGit(t, "-c", "http.extraHeader=Authorization: Basic "+basic, "ls-remote", w.url("widgets", ""))
		if (err == nil) != works {
			t.Errorf("token %q: %v\n%s", token, err, out)
		}
	}
}

func TestCloneOfAPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "clone")
	w.git(t, "clone", "--quiet", "--depth=1", "--filter=blob:none", "--branch=feature/topic", w.url("widgets", ""), dir)
	if count := w.git(t, "-C", dir, "rev-list", "--count", "HEAD"); count != "1" {
		t.Errorf("%s commits, want 1", count)
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	archived := w.AddRepository("octo", "archived")
	archived.Archived = true
	for _, c := range []struct {
		name, url string
		works     bool
	}{
		{"without token", w.url("widgets", ""), false},
		{"with a wrong token", w.url("widgets", "wrong"), false},
		{"to an archived repository", w.url("archived", w.Token), false},
		{"to an unknown repository", w.url("unknown", w.Token), false},
		{"with the token", w.url("widgets", w.Token), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := w.tryGit(t, "push", "--quiet", c.url, "feature/topic:refs/heads/pushed")
			if (err == nil) != c.works {
				t.Fatalf("push: %v\n%s", err, out)
			}
			got := w.ask(t, "GET", widgets+"/git/ref/heads/pushed", "")
			if (got.status == 200) != c.works {
				t.Errorf("the branch is answered with %d", got.status)
			}
		})
	}
}

// TestLargePush sends what git puts into a chunked body.
func TestLargePush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	noise := strings.Repeat(w.git(t, "rev-parse", "main"), 1<<16)
	if err := os.WriteFile(filepath.Join(w.checkout, "large"), []byte(noise), 0o644); err != nil {
		t.Fatal(err)
	}
	w.git(t, "add", "large")
	w.git(t, "commit", "--quiet", "--message=Large")
	w.git(t, "-c", "core.compression=0", "-c", "http.postBuffer=65536", "push", "--quiet", w.url("widgets", w.Token), "HEAD:refs/heads/large")
	if got := w.git(t, "-C", w.repo.Dir, "rev-parse", "refs/heads/large"); got != w.git(t, "rev-parse", "HEAD") {
		t.Errorf("the branch is at %s", got)
	}
}

func TestRequestsOfGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git(t, "push", "--quiet", w.url("widgets", w.Token), "main:refs/heads/pushed")
	for _, request := range w.Requests() {
		if request.Body != nil {
			t.Errorf("%s %s is kept with its body", request.Method, request.Path)
		}
	}
	want := forgetest.Request{Method: "POST", Path: "/octo/widgets.git/git-receive-pack", Authorized: true}
	all := w.Requests()
	if diff := cmp.Diff(want, all[len(all)-1]); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.On("POST", "/octo/*/git-receive-pack", forgetest.Reply{Status: 503}, 1)
	push := []string{"push", "--quiet", w.url("widgets", w.Token), "main:refs/heads/pushed"}
	if out, err := w.tryGit(t, push...); err == nil {
		t.Errorf("the push goes through the fault: %s", out)
	}
	w.git(t, push...)
}
