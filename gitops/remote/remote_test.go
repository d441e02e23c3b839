package remote_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/must"
)

const token = "ghs_0123456789abcdef"

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return gittest.Repo{T: t, Dir: dir}.Git(args...)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	gittest.Repo{T: t, Dir: filepath.Dir(path)}.Write(filepath.Base(path), content)
}

// program writes a script of a shell that can be started.
func program(t *testing.T, path, script string) {
	t.Helper()
	write(t, path, "#!/bin/sh\n"+script+"\n")
	must.Do(t, os.Chmod(path, 0o755))
}

// origin is the private repository o/r of a forge, with two commits on main and one on side.
type origin struct {
	*forgetest.Forge
	bare       string
	base, side string
	work       string // a checkout whose commits are not pushed
}

func newOrigin(t *testing.T) origin {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{Token: token})
	repository := f.AddRepository("o", "r")
	repository.Private = true
	o := origin{Forge: f, bare: repository.Dir, work: gittest.New(t).Dir}
	write(t, filepath.Join(o.work, "a.txt"), "one\n")
	commit(t, o.work, "one")
	write(t, filepath.Join(o.work, "d", "b.txt"), "two\n")
	o.base = commit(t, o.work, "two")
	git(t, o.work, "tag", "-m", "first", "v1")
	git(t, o.work, "checkout", "--quiet", "-b", "side")
	write(t, filepath.Join(o.work, "side.txt"), "side\n")
	o.side = commit(t, o.work, "side")
	git(t, o.work, "push", "--quiet", o.bare, "main", "side", "v1")
	git(t, o.work, "checkout", "--quiet", "main")
	return o
}

func commit(t *testing.T, dir, message string) (sha string) {
	t.Helper()
	gittest.Repo{T: t, Dir: dir}.Commit(message)
	return git(t, dir, "rev-parse", "HEAD")
}

// remote is the repository by http.
func (o origin) remote() remote.Remote {
	return remote.Remote{URL: o.URL + "/o/r.git", Token: token, Path: os.Getenv("PATH")}
}

// change is a new commit on main of the checkout in dir.
func change(t *testing.T, dir, content string) (sha string) {
	t.Helper()
	write(t, filepath.Join(dir, "new.txt"), content)
	return commit(t, dir, content)
}

// storeOf is a git folder of its own that borrows what a checkout has.
func storeOf(t *testing.T, dir string) remote.Store {
	t.Helper()
	own := filepath.Join(t.TempDir(), "own.git")
	git(t, dir, "init", "--quiet", "--bare", "--template=", own)
	if shallow, err := os.ReadFile(filepath.Join(dir, ".git", "shallow")); err == nil {
		write(t, filepath.Join(own, "shallow"), string(shallow))
	}
	return remote.Store{Dir: own, Borrowed: []string{filepath.Join(dir, ".git")}}
}

// at is a repository without credentials.
func at(url string) remote.Remote { return remote.Remote{URL: url, Path: os.Getenv("PATH")} }

// way is one way to reach the same repository.
type way struct {
	name   string
	remote remote.Remote
}

func (o origin) ways() []way { return []way{{"http", o.remote()}, {"path", at(o.bare)}} }

func TestBranches(t *testing.T) {
	o := newOrigin(t)
	o.AddRepository("o", "empty")
	want := map[string]string{"main": o.base, "side": o.side}
	for _, w := range o.ways() {
		t.Run(w.name, func(t *testing.T) {
			must.Same(t, want, must.Get(remote.Branches(t.Context(), w.remote))(t))
			w.remote.URL = strings.Replace(w.remote.URL, "o/r.git", "o/empty.git", 1)
			must.Same(t, 0, len(must.Get(remote.Branches(t.Context(), w.remote))(t)), "without commits")
		})
	}
}

func TestPush(t *testing.T) {
	o := newOrigin(t)
	for i, w := range o.ways() {
		t.Run(w.name, func(t *testing.T) {
			branch, from := "agent-ci/"+strings.Repeat("x", i+1), storeOf(t, o.work)
			first := change(t, o.work, w.name)
			must.Do(t, remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: branch, Commit: first, From: from}), "create")
			wantTip(t, o, branch, first)

			second := change(t, o.work, w.name+" again")
			options := remote.PushOptions{Branch: branch, Commit: second, From: from, Expected: first}
			must.Do(t, remote.Push(t.Context(), w.remote, options), "update")
			wantTip(t, o, branch, second)
			git(t, o.bare, "fsck", "--strict", "--connectivity-only")
			must.Do(t, remote.Push(t.Context(), w.remote, options), "a push of what is there already")

			options = remote.PushOptions{Branch: branch, Commit: o.side, From: from, Expected: second}
			must.Do(t, remote.Push(t.Context(), w.remote, options), "forced, without objects")
			wantTip(t, o, branch, o.side)
		})
	}
}

func wantTip(t *testing.T, o origin, branch, want string) {
	t.Helper()
	must.Same(t, want, git(t, o.bare, "rev-parse", "refs/heads/"+branch), branch)
}

func TestPushLosesLease(t *testing.T) {
	o := newOrigin(t)
	sha := change(t, o.work, "x")
	cases := []struct {
		name, branch, expected, found string
	}{
		{"must not exist but does", "side", "", o.side},
		{"is elsewhere", "side", o.base, o.side},
		{"is gone", "gone", o.base, ""},
	}
	for _, w := range o.ways() {
		for _, c := range cases {
			t.Run(w.name+"/"+c.name, func(t *testing.T) {
				err := remote.Push(t.Context(), w.remote, remote.PushOptions{
					Branch: c.branch, Commit: sha, Expected: c.expected, From: storeOf(t, o.work),
				})
				var lost *remote.LeaseError
				if !errors.As(err, &lost) {
					t.Fatalf("err = %v, want a LeaseError", err)
				}
				want := &remote.LeaseError{Branch: c.branch, Expected: c.expected, Found: c.found}
				must.Same(t, want, lost)
				wantTip(t, o, "side", o.side)
			})
		}
	}
}

// A branch that moves after git saw it, and before it is locked.
func TestPushLosesRace(t *testing.T) {
	o := newOrigin(t)
	sha := change(t, o.work, "x")
	for i, w := range o.ways() {
		t.Run(w.name, func(t *testing.T) {
			branch := "race" + strings.Repeat("x", i)
			git(t, o.bare, "update-ref", "refs/heads/"+branch, o.base)
			program(t, filepath.Join(o.bare, "hooks", "pre-receive"), "unset GIT_QUARANTINE_PATH\nexec git update-ref refs/heads/"+branch+" "+o.side)
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: branch, Commit: sha, From: storeOf(t, o.work), Expected: o.base})
			var lost *remote.LeaseError
			if !errors.As(err, &lost) || lost.Found != o.side {
				t.Errorf("err = %v, want a LeaseError that found %s", err, o.side)
			}
			wantTip(t, o, branch, o.side)
		})
	}
}

// What the other side has is not sent again, nor looked for in a history that is not here.
func TestPushSendsOnlyChange(t *testing.T) {
	o := newOrigin(t)
	git(t, o.bare, "config", "receive.unpackLimit", "1") // the pack is kept as it came
	for i, w := range o.ways() {
		t.Run(w.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			git(t, o.work, "clone", "--quiet", "--depth=1", "file://"+o.bare, dir)
			sha, before := change(t, dir, w.name), packs(t, o.bare)
			branch := "shallow" + strings.Repeat("x", i)
			must.Do(t, remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: branch, Commit: sha, From: storeOf(t, dir)}))
			must.Same(t, w.name+"\ntwo\none", git(t, o.bare, "log", "--format=%s", branch), "log there")
			for name, size := range packs(t, o.bare) {
				if _, old := before[name]; !old && size != 3 {
					t.Errorf("%d objects were sent; the commit, its tree and new.txt are enough", size)
				}
			}
		})
	}
}

// packs are the packs of a repository, with their numbers of objects.
func packs(t *testing.T, bare string) map[string]uint32 {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(bare, "objects", "pack", "*.pack")))(t)
	all := map[string]uint32{}
	for _, name := range names {
		pack := must.Get(os.ReadFile(name))(t)
		all[name] = binary.BigEndian.Uint32(pack[8:])
	}
	return all
}

func TestPushReportsHookRejection(t *testing.T) {
	o := newOrigin(t)
	program(t, filepath.Join(o.bare, "hooks", "pre-receive"), "printf 'no\\033[31m pushes on \\tFridays\\n' >&2\nexit 1")
	sha := change(t, o.work, "x")
	for _, w := range o.ways() {
		t.Run(w.name, func(t *testing.T) {
			err := remote.Push(t.Context(), w.remote, remote.PushOptions{Branch: "x", Commit: sha, From: storeOf(t, o.work)})
			var refused *remote.RejectedError
			if !errors.As(err, &refused) {
				t.Fatalf("err = %v, want a RejectedError", err)
			}
			must.Same(t, "pre-receive hook declined (no[31m pushes on Fridays)", refused.Reason, "Reason")
		})
	}
}

// Hooks of a repository that is pushed to run as they do after any push.
func TestPushRunsRemoteHooks(t *testing.T) {
	o := newOrigin(t)
	seen := filepath.Join(t.TempDir(), "seen")
	program(t, filepath.Join(o.bare, "hooks", "post-receive"), "env >"+seen)
	must.Do(t, remote.Push(t.Context(), at(o.bare), remote.PushOptions{Branch: "x", Commit: change(t, o.work, "x"), From: storeOf(t, o.work)}))
	env := must.Get(os.ReadFile(seen))(t)
	for line := range strings.Lines(string(env)) {
		for _, name := range []string{"GIT_ALLOW_PROTOCOL", "GIT_CONFIG_COUNT", "GIT_ALTERNATE", "GIT_NO_REPLACE"} {
			must.Same(t, false, strings.HasPrefix(line, name), "the hook gets", line)
		}
	}
}

func TestRefusesPushToLocalRepository(t *testing.T) {
	o := newOrigin(t)
	sha := change(t, o.work, "x")
	git(t, o.bare, "branch", "taken/below", "main")
	there := filepath.Join(t.TempDir(), "there")
	git(t, o.work, "clone", "--quiet", o.bare, there)
	for _, c := range []struct{ name, path, branch, expected, words string }{
		{"checked out", there, "main", o.base, "check"},
		{"a folder of branches", o.bare, "taken", "", "give another name"},
		{"below a branch", o.bare, "side/x", "", "give another name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := remote.Push(t.Context(), at(c.path), remote.PushOptions{Branch: c.branch, Commit: sha, From: storeOf(t, o.work), Expected: c.expected})
			var refused *remote.RejectedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("err = %v, want a RejectedError with %q", err, c.words)
			}
		})
	}
}

func TestClassifiesRefusedAccess(t *testing.T) {
	o := newOrigin(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "down for the night, Authentication failed", http.StatusBadGateway)
	}))
	t.Cleanup(broken.Close)
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	for _, c := range []struct {
		name, url, token string
		want             error
	}{
		{"no token", o.URL + "/o/r.git", "", remote.ErrAuth},
		{"wrong token", o.URL + "/o/r.git", "wrong1", remote.ErrAuth},
		{"no repository by http", o.URL + "/o/none.git", token, remote.ErrNotFound},
		{"no repository by path", filepath.Join(t.TempDir(), "missing.git"), "", remote.ErrNotFound},
		{"nobody listens", "http://127.0.0.1:1/o/r.git", token, remote.ErrUnreachable},
		{"unknown authority", untrusted.URL + "/o/r.git", token, remote.ErrUnreachable},
		{"bad gateway", broken.URL + "/o/r.git", token, remote.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := at(c.url)
			r.Token = c.token
			for does, err := range map[string]error{
				"push":  remote.Push(t.Context(), r, remote.PushOptions{Branch: "x", Commit: o.base, From: storeOf(t, o.work)}),
				"clone": remote.Clone(t.Context(), r, remote.CloneOptions{Dir: filepath.Join(t.TempDir(), "clone")}),
			} {
				must.Is(t, c.want, err, does)
				must.Same(t, c.name == "unknown authority", strings.Contains(fmt.Sprint(err), "SSL_CERT_FILE"), err)
				if err == nil || c.token != "" && strings.Contains(err.Error(), c.token) {
					t.Errorf("the error shows the token: %v", err)
				}
			}
		})
	}
}

func TestRefusesURLs(t *testing.T) {
	for _, c := range []struct{ name, url, token, words string }{
		{"token in the clear", "http://git.example.com/o/r.git", token, "use https"},
		{"password in the clear", "http://u:p@git.example.com/o/r.git", "", "use https"},
		{"a program as transport", "ext::sh -c true", "", "use https"},
		{"git protocol", "git://git.example.com/o/r.git", "", "use https"},
		{"ssh", "ssh://-oProxyCommand=x/o/r.git", "", "use https"},
		{"ssh in short", "git@git.example.com:o/r.git", "", "not the URL"},
		{"more than one line", "https://git.example.com/o/r.git", "one\nhost=elsewhere", "more than one line"},
		{"nothing", "", "", "not the URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Fail(t, c.words, must.Err(remote.Branches(t.Context(), remote.Remote{URL: c.url, Token: c.token, Path: os.Getenv("PATH")})))
		})
	}
}

func TestTokenStaysWithItsHost(t *testing.T) {
	o := newOrigin(t)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, o.URL+req.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(moved.Close)
	r := at(moved.URL + "/o/r.git")
	r.Token = token
	for name, use := range map[string]func() error{
		"list": func() error { _, err := remote.Branches(t.Context(), r); return err },
		"push": func() error {
			return remote.Push(t.Context(), r, remote.PushOptions{Branch: "x", Commit: o.base, From: storeOf(t, o.work)})
		},
		"clone": func() error {
			return remote.Clone(t.Context(), r, remote.CloneOptions{Dir: filepath.Join(t.TempDir(), "clone")})
		},
	} {
		must.Fail(t, "another host", use(), name)
	}
	for _, req := range o.Requests() {
		must.Same(t, false, req.Authorized, "credentials went to the other host", req.Path)
	}
}

func TestFollowsRedirectOnSameHost(t *testing.T) {
	o := newOrigin(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if rest, old := strings.CutPrefix(req.URL.RequestURI(), "/old/r.git"); old {
			http.Redirect(w, req, "/o/r.git"+rest, http.StatusMovedPermanently)
			return
		}
		o.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r := o.remote()
	r.URL = server.URL + "/old/r.git"
	sha := change(t, o.work, "x")
	must.Do(t, remote.Push(t.Context(), r, remote.PushOptions{Branch: "x", Commit: sha, From: storeOf(t, o.work)}), "push")
	wantTip(t, o, "x", sha)
	dir := filepath.Join(t.TempDir(), "clone")
	must.Do(t, remote.Clone(t.Context(), r, remote.CloneOptions{Dir: dir}))
	must.Same(t, r.URL, strings.TrimSpace(git(t, dir, "config", "--get-all", "remote.origin.url")), "the clone has the origin")
}

func TestClone(t *testing.T) {
	o := newOrigin(t)
	for _, w := range o.ways() {
		for _, c := range []struct{ name, branch, commits, head string }{{"head", "", "2", "main"}, {"branch", "side", "3", "side"}} {
			t.Run(w.name+"/"+c.name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "clone")
				must.Do(t, remote.Clone(t.Context(), w.remote, remote.CloneOptions{Dir: dir, Branch: c.branch}))
				filled(t, dir)
				wantClone(t, dir, c.commits, []string{"refs/heads/" + c.head, "refs/remotes/origin/main", "refs/remotes/origin/side", "refs/tags/v1"})
			})
		}
	}
}

// filled checks out the files of a clone, which has none yet.
func filled(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("git wrote files: %v, %v", entries, err)
	}
	git(t, dir, "reset", "--quiet", "--hard")
}

func wantClone(t *testing.T, dir, commits string, refs []string) {
	t.Helper()
	must.Same(t, "", git(t, dir, "status", "--porcelain"), "git status")
	git(t, dir, "fsck", "--strict")
	must.Same(t, commits, git(t, dir, "rev-list", "--count", "HEAD"))
	listed := strings.Fields(git(t, dir, "for-each-ref", "--format=%(refname)"))
	listed = slices.DeleteFunc(listed, func(name string) bool { return name == "refs/remotes/origin/HEAD" })
	must.Same(t, refs, listed, "refs")
	must.Fail(t, "", must.Err(os.Stat(filepath.Join(dir, ".git", "shallow"))), "the clone is shallow")
	wantNoToken(t, dir)
}

func wantNoToken(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		must.Same(t, false, bytes.Contains(content, []byte(token)), path, "holds the token")
		must.Same(t, false, strings.Contains(path, "/hooks/"), path, "came from a template")
		return err
	})
	must.Do(t, err)
}

func TestCloneFails(t *testing.T) {
	o := newOrigin(t)
	empty, emptyByHTTP := o.AddRepository("o", "empty").Dir, o.remote()
	emptyByHTTP.URL = o.URL + "/o/empty.git"
	for _, c := range []struct {
		name   string
		remote remote.Remote
		branch string
		want   error
	}{
		{"no branch here", at(o.bare), "none", remote.ErrNotFound},
		{"no branch by http", o.remote(), "none", remote.ErrNotFound},
		{"empty here", at(empty), "", remote.ErrEmpty},
		{"empty by http", emptyByHTTP, "", remote.ErrEmpty},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			err := remote.Clone(t.Context(), c.remote, remote.CloneOptions{Dir: dir, Branch: c.branch})
			must.Is(t, c.want, err)
			must.Same(t, c.branch != "", strings.Contains(err.Error(), "name a branch that is there"), err)
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("the folder was left: %v", err)
			}
		})
	}
}

// The authorities that Go programs trust are those that git does.
func TestTLS(t *testing.T) {
	o := newOrigin(t)
	server := httptest.NewTLSServer(o)
	t.Cleanup(server.Close)
	r := o.remote()
	r.URL = server.URL + "/o/r.git"
	must.Is(t, remote.ErrUnreachable, must.Err(remote.Branches(t.Context(), r)), "a server that nobody knows")
	trust(t, server)
	t.Setenv("GIT_SSL_CAINFO", "") // which is restored
	must.Do(t, os.Unsetenv("GIT_SSL_CAINFO"))
	must.Same(t, 2, len(must.Get(remote.Branches(t.Context(), r))(t)))
}

func TestName(t *testing.T) {
	for _, c := range []struct{ url, name, local string }{
		{"https://u:secret@example.com/o/r.git", "https://example.com/o/r.git", ""},
		{"ssh://git:secret@example.com/o/r.git", "ssh://example.com/o/r.git", ""},
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

// No program that git starts, and git itself, is shown a token: not as an argument, not in its
// environment. Those of the user and of the process are not used at all.
func TestGitReceivesNoSecrets(t *testing.T) {
	o := newOrigin(t)
	t.Setenv("OPENAI_API_KEY", "sk-other-secret")
	config, used := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "used")
	write(t, config, "[credential]\n\thelper = !touch "+used+"\n[url \"https://elsewhere.example/\"]\n\tinsteadOf = http://\n\tpushInsteadOf = http://\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	bin := t.TempDir()
	seen := filepath.Join(t.TempDir(), "seen")
	for _, name := range []string{"git", "sh"} {
		path := must.Get(exec.LookPath(name))(t)
		program(t, filepath.Join(bin, name), "printf '%s\\n' "+name+" \"$@\" >>"+seen+".args\nenv >>"+seen+".env\nexec "+path+" \"$@\"")
	}
	r := o.remote()
	r.Path = bin + ":" + r.Path
	must.Do(t, remote.Clone(t.Context(), r, remote.CloneOptions{Dir: filepath.Join(t.TempDir(), "clone")}))
	sha := change(t, o.work, "x")
	must.Do(t, remote.Push(t.Context(), r, remote.PushOptions{Branch: "x", Commit: sha, From: storeOf(t, o.work)}))
	for _, file := range []string{seen + ".args", seen + ".env"} {
		content := must.Get(os.ReadFile(file))(t)
		for _, secret := range []string{token, "sk-other-secret"} {
			must.Same(t, false, bytes.Contains(content, []byte(secret)), filepath.Base(file), "holds", secret, content)
		}
	}
	must.Fail(t, "", must.Err(os.Stat(used)), "a helper of the user was asked")
}

func TestCloneRefusesExistingFolder(t *testing.T) {
	o := newOrigin(t)
	dir := t.TempDir()
	must.Fail(t, "", remote.Clone(t.Context(), at(o.bare), remote.CloneOptions{Dir: dir}), "it was cloned into")
	must.Do(t, must.Err(os.Stat(dir)), "what stood there is gone")
}
