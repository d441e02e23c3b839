package remote_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/google/go-cmp/cmp"
)

const token = "ghs_0123456789abcdef"

var gitProgram, _ = exec.LookPath("git")

// isolate keeps the configuration of the machine out of a test.
func isolate(t *testing.T) {
	t.Helper()
	if gitProgram == "" {
		t.Skip("needs a git program to compare with")
	}
	for name, value := range map[string]string{
		"HOME": t.TempDir(), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "SSH_AUTH_SOCK": "",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
	} {
		t.Setenv(name, value)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return gitWith(t, dir, nil, args...)
}

func gitWith(t *testing.T, dir string, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command(gitProgram, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// origin is a bare repository with two commits on main and one on side, below
// a folder that an http server can serve.
type origin struct {
	root, bare string
	base, side string
	work       string // a checkout whose commits are not pushed
}

func newOrigin(t *testing.T) origin {
	t.Helper()
	isolate(t)
	root := t.TempDir()
	o := origin{root: root, bare: filepath.Join(root, "o", "r.git"), work: filepath.Join(t.TempDir(), "work")}
	git(t, root, "init", "--quiet", "--bare", "--initial-branch=main", o.bare)
	git(t, o.bare, "config", "http.receivepack", "true")
	git(t, root, "init", "--quiet", "--initial-branch=main", o.work)
	write(t, filepath.Join(o.work, "a.txt"), "one\n")
	o.commit(t, "one")
	write(t, filepath.Join(o.work, "d", "b.txt"), "two\n")
	o.base = o.commit(t, "two")
	git(t, o.work, "tag", "-m", "first", "v1")
	git(t, o.work, "checkout", "--quiet", "-b", "side")
	write(t, filepath.Join(o.work, "side.txt"), "side\n")
	o.side = o.commit(t, "side")
	git(t, o.work, "push", "--quiet", o.bare, "main", "side", "v1")
	git(t, o.work, "checkout", "--quiet", "main")
	return o
}

func (o origin) commit(t *testing.T, message string) string {
	t.Helper()
	git(t, o.work, "add", "-A")
	git(t, o.work, "commit", "--quiet", "--allow-empty", "-m", message)
	return git(t, o.work, "rev-parse", "HEAD")
}

// change is a new commit on main of the checkout in dir, with its pack.
func change(t *testing.T, dir, content string) (sha string, pack []byte) {
	t.Helper()
	write(t, filepath.Join(dir, "new.txt"), content)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "--quiet", "-m", content)
	return git(t, dir, "rev-parse", "HEAD"), packOf(t, dir, "HEAD~1..HEAD")
}

func packOf(t *testing.T, dir, revisions string) []byte {
	t.Helper()
	cmd := exec.Command(gitProgram, "pack-objects", "--revs", "--stdout", "--quiet")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(revisions+"\n")
	pack, err := cmd.Output()
	if err != nil {
		t.Fatalf("git pack-objects: %v", err)
	}
	return pack
}

// backend serves the repositories below root by git http-backend to those who
// have the token.
type backend struct {
	*httptest.Server
	mu       sync.Mutex
	withAuth []string // paths of requests that came with credentials
}

func serve(t *testing.T, root string) *backend {
	t.Helper()
	b := &backend{}
	handler := &cgi.Handler{
		Path: gitProgram, Args: []string{"http-backend"},
		Env:        []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
		InheritEnv: []string{"HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"},
	}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if req.Header.Get("Authorization") != "" {
			b.mu.Lock()
			b.withAuth = append(b.withAuth, req.URL.Path)
			b.mu.Unlock()
		}
		if user != "x-access-token" || password != token {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) remote() remote.Remote {
	return remote.Remote{URL: b.URL + "/o/r.git", Token: token}
}

// way is one way to reach the same repository.
type way struct {
	name   string
	remote remote.Remote
	git    string
}

func ways(t *testing.T, o origin) []way {
	t.Helper()
	return []way{
		{"http", serve(t, o.root).remote(), ""},
		{"path by git", remote.Remote{URL: o.bare}, gitProgram},
		{"path without git", remote.Remote{URL: "file://" + o.bare}, ""},
		{"ssh", serveSSH(t, o.bare), ""},
	}
}

func TestList(t *testing.T) {
	o := newOrigin(t)
	want := map[string]string{
		"HEAD": o.base, "refs/heads/main": o.base, "refs/heads/side": o.side, "refs/tags/v1": git(t, o.work, "rev-parse", "v1"),
	}
	for _, w := range ways(t, o) {
		t.Run(w.name, func(t *testing.T) {
			got, err := remote.List(t.Context(), w.remote)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("refs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListOfEmptyRepository(t *testing.T) {
	isolate(t)
	root := t.TempDir()
	bare := filepath.Join(root, "o", "r.git")
	git(t, root, "init", "--quiet", "--bare", bare)
	for _, w := range ways(t, origin{root: root, bare: bare}) {
		t.Run(w.name, func(t *testing.T) {
			got, err := remote.List(t.Context(), w.remote)
			if err != nil || len(got) != 0 {
				t.Errorf("List = %v, %v, want no refs", got, err)
			}
		})
	}
}

func TestPush(t *testing.T) {
	o := newOrigin(t)
	for i, w := range ways(t, o) {
		t.Run(w.name, func(t *testing.T) {
			branch := "agent-ci/" + strings.Repeat("x", i+1)
			first, _ := change(t, o.work, w.name)
			options := remote.PushOptions{Branch: branch, Commit: first, Pack: bytes.NewReader(packOf(t, o.work, o.base+"..HEAD")), Git: w.git}
			if err := remote.Push(t.Context(), w.remote, options); err != nil {
				t.Fatalf("create: %v", err)
			}
			wantTip(t, o, branch, first)

			second, pack := change(t, o.work, w.name+" again")
			options = remote.PushOptions{Branch: branch, Commit: second, Expected: first, Pack: bytes.NewReader(pack), Git: w.git}
			if err := remote.Push(t.Context(), w.remote, options); err != nil {
				t.Fatalf("update: %v", err)
			}
			wantTip(t, o, branch, second)
			git(t, o.bare, "fsck", "--strict", "--connectivity-only")

			options = remote.PushOptions{Branch: branch, Commit: second, Expected: first, Git: w.git}
			if err := remote.Push(t.Context(), w.remote, options); err != nil {
				t.Errorf("a push of what is there already: %v", err)
			}

			options = remote.PushOptions{Branch: branch, Commit: o.side, Expected: second, Git: w.git}
			if err := remote.Push(t.Context(), w.remote, options); err != nil {
				t.Fatalf("forced, without objects: %v", err)
			}
			wantTip(t, o, branch, o.side)
		})
	}
}

func TestPushToEmptyRepository(t *testing.T) {
	o := newOrigin(t)
	empty := filepath.Join(o.root, "o", "empty.git")
	git(t, o.root, "init", "--quiet", "--bare", empty)
	git(t, empty, "config", "http.receivepack", "true")
	overHTTP, overSSH := serve(t, o.root).remote(), serveSSH(t, empty)
	overHTTP.URL = strings.Replace(overHTTP.URL, "r.git", "empty.git", 1)
	for _, w := range []way{
		{"http", overHTTP, ""},
		{"path by git", remote.Remote{URL: empty}, gitProgram},
		{"path without git", remote.Remote{URL: empty}, ""},
		{"ssh", overSSH, ""},
	} {
		t.Run(w.name, func(t *testing.T) {
			pack := bytes.NewReader(packOf(t, o.work, "main"))
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: "first", Commit: o.base, Pack: pack, Git: w.git})
			if err != nil {
				t.Fatal(err)
			}
			if got := git(t, empty, "rev-parse", "first"); got != o.base {
				t.Errorf("first is at %s, want %s", got, o.base)
			}
			git(t, empty, "update-ref", "-d", "refs/heads/first")
		})
	}
}

func wantTip(t *testing.T, o origin, branch, want string) {
	t.Helper()
	if got := git(t, o.bare, "rev-parse", "refs/heads/"+branch); got != want {
		t.Errorf("%s is at %s, want %s", branch, got, want)
	}
}

func TestPushLosesLease(t *testing.T) {
	o := newOrigin(t)
	sha, pack := change(t, o.work, "x")
	cases := []struct {
		name, branch, expected, found string
	}{
		{"must not exist but does", "side", "", o.side},
		{"is elsewhere", "side", o.base, o.side},
		{"is gone", "gone", o.base, ""},
	}
	for _, w := range ways(t, o) {
		for _, c := range cases {
			t.Run(w.name+"/"+c.name, func(t *testing.T) {
				err := remote.Push(t.Context(), w.remote, remote.PushOptions{
					Branch: c.branch, Commit: sha, Expected: c.expected, Pack: bytes.NewReader(pack), Git: w.git,
				})
				var lost *remote.LeaseError
				if !errors.As(err, &lost) {
					t.Fatalf("err = %v, want a LeaseError", err)
				}
				want := &remote.LeaseError{Branch: c.branch, Expected: c.expected, Found: c.found}
				if diff := cmp.Diff(want, lost); diff != "" {
					t.Error(diff)
				}
				wantTip(t, o, "side", o.side)
			})
		}
	}
}

// onRead runs do at the first read of the pack: after the list of refs was
// seen, before the branch is moved.
type onRead struct {
	do   func()
	pack *bytes.Reader
}

func (r *onRead) Read(p []byte) (int, error) {
	if r.do != nil {
		r.do()
		r.do = nil
	}
	return r.pack.Read(p)
}

func TestPushLosesRace(t *testing.T) {
	o := newOrigin(t)
	sha, pack := change(t, o.work, "x")
	for i, w := range ways(t, o) {
		t.Run(w.name, func(t *testing.T) {
			branch := "race" + strings.Repeat("x", i)
			git(t, o.bare, "update-ref", "refs/heads/"+branch, o.base)
			overtake := func() { git(t, o.bare, "update-ref", "refs/heads/"+branch, o.side) }
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{
				Branch: branch, Commit: sha, Expected: o.base, Pack: &onRead{overtake, bytes.NewReader(pack)}, Git: w.git,
			})
			var lost *remote.LeaseError
			if !errors.As(err, &lost) || lost.Found != o.side {
				t.Errorf("err = %v, want a LeaseError that found %s", err, o.side)
			}
			wantTip(t, o, branch, o.side)
		})
	}
}

func TestPushWithoutBase(t *testing.T) {
	o := newOrigin(t)
	change(t, o.work, "never pushed")
	sha, pack := change(t, o.work, "on top")
	for _, w := range ways(t, o) {
		t.Run(w.name, func(t *testing.T) {
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: "x", Commit: sha, Pack: bytes.NewReader(pack), Git: w.git})
			var refused *remote.RejectedError
			if !errors.As(err, &refused) {
				t.Fatalf("err = %v, want a RejectedError", err)
			}
			if !strings.Contains(err.Error(), "push the base branch first") {
				t.Errorf("err = %v, want it to tell to push the base branch first", err)
			}
			if refs, _ := remote.List(t.Context(), w.remote); refs["refs/heads/x"] != "" {
				t.Errorf("the branch was made in spite of it")
			}
		})
	}
}

func TestPushRejectedByHook(t *testing.T) {
	o := newOrigin(t)
	hook := filepath.Join(o.bare, "hooks", "pre-receive")
	write(t, hook, "#!/bin/sh\nprintf 'no\\033[31m pushes on \\tFridays\\n' >&2\nexit 1\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	sha, pack := change(t, o.work, "x")
	for _, w := range ways(t, o) {
		if w.name == "path without git" {
			continue // runs no hooks, as its documentation says
		}
		t.Run(w.name, func(t *testing.T) {
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: "x", Commit: sha, Pack: bytes.NewReader(pack), Git: w.git})
			var refused *remote.RejectedError
			if !errors.As(err, &refused) {
				t.Fatalf("err = %v, want a RejectedError", err)
			}
			if want := "pre-receive hook declined (no[31m pushes on  Fridays)"; refused.Reason != want {
				t.Errorf("Reason = %q, want %q", refused.Reason, want)
			}
		})
	}
}

func TestPushHereIsRefused(t *testing.T) {
	o := newOrigin(t)
	sha, pack := change(t, o.work, "x")
	git(t, o.bare, "branch", "taken/below", "main")
	there := filepath.Join(t.TempDir(), "there")
	git(t, o.root, "clone", "--quiet", o.bare, there)
	cases := []struct{ name, path, branch, expected, words string }{
		{"checked out", there, "main", o.base, "check"},
		{"a folder of branches", o.bare, "taken", "", "taken/below"},
		{"below a branch", o.bare, "side/x", "", "side"},
	}
	for _, program := range []string{"", gitProgram} {
		for _, c := range cases {
			t.Run(c.name+" "+filepath.Base(program), func(t *testing.T) {
				err := remote.Push(t.Context(), remote.Remote{URL: c.path}, remote.PushOptions{
					Branch: c.branch, Commit: sha, Expected: c.expected, Pack: bytes.NewReader(pack), Git: program,
				})
				var refused *remote.RejectedError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.words) {
					t.Errorf("err = %v, want a RejectedError with %q", err, c.words)
				}
			})
		}
	}
}

func TestPushFromShallowClone(t *testing.T) {
	o := newOrigin(t)
	for i, w := range ways(t, o) {
		t.Run(w.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			git(t, o.root, "clone", "--quiet", "--depth=1", "file://"+o.bare, dir)
			sha, pack := change(t, dir, w.name)
			branch := "shallow" + strings.Repeat("x", i)
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: branch, Commit: sha, Pack: bytes.NewReader(pack), Git: w.git})
			if err != nil {
				t.Fatal(err)
			}
			if got := git(t, o.bare, "log", "--format=%s", branch); got != w.name+"\ntwo\none" {
				t.Errorf("log there = %q", got)
			}
		})
	}
}

func TestRefusedAccess(t *testing.T) {
	o := newOrigin(t)
	server := serve(t, o.root)
	missing := filepath.Join(o.root, "missing.git")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "down for the night", http.StatusBadGateway)
	}))
	t.Cleanup(broken.Close)
	unknownKey := serveSSH(t, o.bare)
	unknownKey.URL = strings.Replace(unknownKey.URL, "127.0.0.1", "localhost", 1)
	cases := []struct {
		name   string
		remote remote.Remote
		git    string
		want   error
	}{
		{"no token", remote.Remote{URL: server.URL + "/o/r.git"}, "", remote.ErrAuth},
		{"wrong token", remote.Remote{URL: server.URL + "/o/r.git", Token: "wrong"}, "", remote.ErrAuth},
		{"no repository by http", remote.Remote{URL: server.URL + "/o/none.git", Token: token}, "", remote.ErrNotFound},
		{"no repository by path", remote.Remote{URL: missing}, "", remote.ErrNotFound},
		{"no repository by git", remote.Remote{URL: missing}, gitProgram, remote.ErrNotFound},
		{"nobody listens", remote.Remote{URL: gone.URL + "/o/r.git", Token: token}, "", remote.ErrUnreachable},
		{"bad gateway", remote.Remote{URL: broken.URL + "/o/r.git", Token: token}, "", remote.ErrUnreachable},
		{"ssh server not in known_hosts", unknownKey, "", remote.ErrAuth},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := remote.Push(t.Context(), c.remote, remote.PushOptions{Branch: "x", Commit: o.base, Git: c.git})
			if !errors.Is(err, c.want) {
				t.Errorf("Push: %v, want %v", err, c.want)
			}
			_, err = remote.Clone(t.Context(), c.remote, remote.CloneOptions{Dir: filepath.Join(t.TempDir(), "clone")})
			if !errors.Is(err, c.want) {
				t.Errorf("Clone: %v, want %v", err, c.want)
			}
			if err == nil || c.remote.Token != "" && strings.Contains(err.Error(), c.remote.Token+"@") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ name, url, token, words string }{
		{"token in the clear", "http://git.example.com/o/r.git", token, "use https"},
		{"password in the clear", "http://u:p@git.example.com/o/r.git", "", "use https"},
		{"a program as transport", "ext::sh -c true", "", "ssh"},
		{"git protocol", "git://git.example.com/o/r.git", "", "use https"},
		{"an option as host", "ssh://-oProxyCommand=x/o/r.git", "", "ssh://git@HOST"},
		{"nothing", "", "", "not the URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := remote.List(t.Context(), remote.Remote{URL: c.url, Token: c.token})
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("err = %v, want one with %q", err, c.words)
			}
		})
	}
}

func TestTokenStaysWithItsHost(t *testing.T) {
	o := newOrigin(t)
	elsewhere := serve(t, o.root)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.URL+req.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(moved.Close)
	r := remote.Remote{URL: moved.URL + "/o/r.git", Token: token}
	for name, use := range map[string]func() error{
		"list": func() error { _, err := remote.List(t.Context(), r); return err },
		"push": func() error { return remote.Push(t.Context(), r, remote.PushOptions{Branch: "x", Commit: o.base}) },
		"clone": func() error {
			_, err := remote.Clone(t.Context(), r, remote.CloneOptions{Dir: t.TempDir()})
			return err
		},
		"clone by git": func() error {
			_, err := remote.Clone(t.Context(), r, remote.CloneOptions{Dir: t.TempDir(), Git: gitProgram})
			return err
		},
	} {
		if err := use(); err == nil || !strings.Contains(err.Error(), "another host") {
			t.Errorf("%s: err = %v, want one that names the other host", name, err)
		}
	}
	if len(elsewhere.withAuth) > 0 {
		t.Errorf("credentials went to the other host: %q", elsewhere.withAuth)
	}
}

func TestRedirectOnTheSameHost(t *testing.T) {
	o := newOrigin(t)
	server := serve(t, o.root)
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if rest, old := strings.CutPrefix(req.URL.RequestURI(), "/old/r.git"); old {
			http.Redirect(w, req, "/o/r.git"+rest, http.StatusMovedPermanently)
			return
		}
		inner.ServeHTTP(w, req)
	})
	r := remote.Remote{URL: server.URL + "/old/r.git", Token: token}
	sha, pack := change(t, o.work, "x")
	if err := remote.Push(t.Context(), r, remote.PushOptions{Branch: "x", Commit: sha, Pack: bytes.NewReader(pack)}); err != nil {
		t.Errorf("push: %v", err)
	}
	for _, program := range []string{"", gitProgram} {
		dir := t.TempDir()
		got, err := remote.Clone(t.Context(), r, remote.CloneOptions{Dir: dir, Git: program})
		if err != nil || got != o.base {
			t.Errorf("clone with git %q = %q, %v, want %s", program, got, err, o.base)
		}
		if origin := strings.TrimSpace(git(t, dir, "config", "--get-all", "remote.origin.url")); origin != r.URL {
			t.Errorf("clone with git %q has the origin %s, want %s", program, origin, r.URL)
		}
	}
}

func TestClone(t *testing.T) {
	o := newOrigin(t)
	cases := []struct {
		name    string
		branch  string
		commits string
		refs    []string
	}{
		{"head", "", "2", []string{"refs/heads/main", "refs/remotes/origin/main", "refs/remotes/origin/side", "refs/tags/v1"}},
		{"branch", "side", "3", []string{"refs/heads/side", "refs/remotes/origin/main", "refs/remotes/origin/side", "refs/tags/v1"}},
	}
	for _, w := range ways(t, o) {
		for _, program := range []string{"", gitProgram} {
			if w.name == "ssh" && program != "" {
				continue // needs an ssh program
			}
			for _, c := range cases {
				t.Run(w.name+"/"+filepath.Base(program)+"/"+c.name, func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "clone")
					got, err := remote.Clone(t.Context(), w.remote, remote.CloneOptions{Dir: dir, Branch: c.branch, Git: program})
					if err != nil {
						t.Fatal(err)
					}
					filled(t, dir, program)
					if want := git(t, dir, "rev-parse", "HEAD"); got != want {
						t.Errorf("Clone = %s, want %s", got, want)
					}
					wantClone(t, dir, c.commits, c.refs)
				})
			}
		}
	}
}

// filled checks out the files of a clone by git, which has none yet.
func filled(t *testing.T, dir, program string) {
	t.Helper()
	if program == "" {
		return
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("git wrote files: %v, %v", entries, err)
	}
	git(t, dir, "reset", "--quiet", "--hard")
}

func wantClone(t *testing.T, dir, commits string, refs []string) {
	t.Helper()
	if status := git(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("git status:\n%s", status)
	}
	git(t, dir, "fsck", "--strict")
	if got := git(t, dir, "rev-list", "--count", "HEAD"); got != commits {
		t.Errorf("%s commits, want %s", got, commits)
	}
	listed := strings.Fields(git(t, dir, "for-each-ref", "--format=%(refname)"))
	listed = slices.DeleteFunc(listed, func(name string) bool { return name == "refs/remotes/origin/HEAD" })
	if diff := cmp.Diff(refs, listed); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	_, err := os.Stat(filepath.Join(dir, ".git", "shallow"))
	if err == nil {
		t.Error("the clone is shallow")
	}
	wantNoToken(t, dir)
}

func wantNoToken(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(token)) {
			t.Errorf("%s holds the token", path)
		}
		if strings.Contains(path, "/hooks/") {
			t.Errorf("%s came from a template", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCloneOfOddTree(t *testing.T) {
	o := newOrigin(t)
	if err := os.Symlink("/etc/hostname", filepath.Join(o.work, "absolute")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(o.work, "tool.sh"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(o.work, "tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.commit(t, "odd")
	git(t, o.work, "push", "--quiet", o.bare, "main")
	for _, program := range []string{"", gitProgram} {
		dir := t.TempDir()
		if _, err := remote.Clone(t.Context(), remote.Remote{URL: o.bare}, remote.CloneOptions{Dir: dir, Git: program}); err != nil {
			t.Fatal(err)
		}
		filled(t, dir, program)
		if target, err := os.Readlink(filepath.Join(dir, "absolute")); err != nil || target != "/etc/hostname" {
			t.Errorf("git %q: the link leads to %q, %v", program, target, err)
		}
		if status := git(t, dir, "status", "--porcelain"); status != "" {
			t.Errorf("git %q: git status:\n%s", program, status)
		}
	}
}

func TestCloneFails(t *testing.T) {
	o := newOrigin(t)
	server := serve(t, o.root)
	empty := filepath.Join(o.root, "empty.git")
	git(t, o.root, "init", "--quiet", "--bare", empty)
	for _, program := range []string{"", gitProgram} {
		for _, c := range []struct {
			name   string
			remote remote.Remote
			branch string
			want   error
		}{
			{"no branch here", remote.Remote{URL: o.bare}, "none", remote.ErrNotFound},
			{"no branch by http", server.remote(), "none", remote.ErrNotFound},
			{"empty here", remote.Remote{URL: empty}, "", remote.ErrEmpty},
			{"empty by http", remote.Remote{URL: server.URL + "/empty.git", Token: token}, "", remote.ErrEmpty},
		} {
			t.Run(c.name+" "+filepath.Base(program), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "clone")
				_, err := remote.Clone(t.Context(), c.remote, remote.CloneOptions{Dir: dir, Branch: c.branch, Git: program})
				if !errors.Is(err, c.want) {
					t.Errorf("err = %v, want %v", err, c.want)
				}
				if _, err := os.Lstat(dir); !os.IsNotExist(err) {
					t.Errorf("the folder was left: %v", err)
				}
			})
		}
	}
}

func TestCloneIntoFullFolder(t *testing.T) {
	o := newOrigin(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mine"), "x")
	if _, err := remote.Clone(t.Context(), remote.Remote{URL: o.bare}, remote.CloneOptions{Dir: dir}); err == nil {
		t.Error("a full folder was cloned into")
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Errorf("what stood there is gone: %v", err)
	}
}

// stalled answers nothing until the test ends.
func stalled(t *testing.T) (server *httptest.Server, reached <-chan struct{}) {
	t.Helper()
	arrived := make(chan struct{}, 1)
	server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server, arrived
}

func TestCancelled(t *testing.T) {
	isolate(t)
	server, reached := stalled(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := remote.List(ctx, remote.Remote{URL: server.URL + "/o/r.git", Token: token})
		done <- err
	}()
	<-reached
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct{ url, name, local string }{
		{"https://u:secret@example.com/o/r.git", "https://example.com/o/r.git", ""},
		{"ssh://git:secret@example.com/o/r.git", "ssh://git@example.com/o/r.git", ""},
		{"git@example.com:o/r.git", "git@example.com:o/r.git", ""},
		{"https://u:sec%ret@example.com/o", "https://example.com/o", ""},
		{"/srv/r.git", "/srv/r.git", "/srv/r.git"},
		{"../r.git", "../r.git", "../r.git"},
		{"./a:b", "./a:b", "./a:b"},
		{"file:///srv/a%20b.git", "file:///srv/a%20b.git", "/srv/a b.git"},
	} {
		t.Run(c.url, func(t *testing.T) {
			r := remote.Remote{URL: c.url}
			path, ok := r.Local()
			if r.Name() != c.name || path != c.local || ok != (c.local != "") {
				t.Errorf("Name = %q, Local = %q, %v; want %q and %q", r.Name(), path, ok, c.name, c.local)
			}
		})
	}
}

func TestGitProgramSeesNoSecrets(t *testing.T) {
	o := newOrigin(t)
	t.Setenv("OPENAI_API_KEY", "sk-other-secret")
	seen := filepath.Join(t.TempDir(), "seen")
	spy := filepath.Join(t.TempDir(), "git")
	write(t, spy, "#!/bin/sh\nprintf '%s\\n' \"$@\" >>"+seen+".args\nenv >>"+seen+".env\nexec "+gitProgram+" \"$@\"\n")
	if err := os.Chmod(spy, 0o755); err != nil {
		t.Fatal(err)
	}
	r := serve(t, o.root).remote()
	if _, err := remote.Clone(t.Context(), r, remote.CloneOptions{Dir: t.TempDir(), Git: spy}); err != nil {
		t.Fatal(err)
	}
	sha, pack := change(t, o.work, "x")
	here := remote.Remote{URL: o.bare, Token: token}
	if err := remote.Push(t.Context(), here, remote.PushOptions{Branch: "x", Commit: sha, Pack: bytes.NewReader(pack), Git: spy}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{seen + ".args", seen + ".env"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{token, "sk-other-secret"} {
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s holds %s:\n%s", filepath.Base(file), secret, content)
			}
		}
	}
}
