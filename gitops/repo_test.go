package gitops_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops"
)

// TestMain gives git and the package under test an empty configuration of the
// user and the system.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "gitops-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config := filepath.Join(home, ".gitconfig")
	if err := os.WriteFile(config, []byte("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"),
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_SYSTEM": os.DevNull,
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
		"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
	} {
		os.Setenv(name, value)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// repo is a checkout made by the git program.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) repo {
	t.Helper()
	r := repo{t, filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(r.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs git and returns what it printed, without the last newline.
func (r repo) git(args ...string) string {
	r.t.Helper()
	return r.gitWith(nil, nil, args...)
}

func (r repo) gitWith(env []string, stdin []byte, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, append(os.Environ(), env...), bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("git %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n")
}

// tryGit is git for a command that may fail.
func (r repo) tryGit(args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	return cmd.Run()
}

func (r repo) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r repo) write(name, content string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o777); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(content), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, r.path(name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) remove(names ...string) {
	r.t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(r.path(name)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r repo) chmod(name string, mode fs.FileMode) {
	r.t.Helper()
	if err := os.Chmod(r.path(name), mode); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits everything that stands there.
func (r repo) commit(message string) {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", message)
}

// seed is a first commit that most tests start from.
func (r repo) seed() {
	r.t.Helper()
	r.write("README", "one\ntwo\n")
	r.write("src/main.go", "package main\n")
	r.write("src/deep/er/x", "x\n")
	r.write("gone", "to be deleted\n")
	r.commit("seed")
}

// files are all files of the work tree but .git: content, whether executable,
// and where links lead.
func (r repo) files() map[string]string {
	r.t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(r.dir, path)
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			list[name] = "-> " + target
			return err
		default:
			data, err := os.ReadFile(path)
			info, err2 := d.Info()
			if err = errors.Join(err, err2); err == nil && info.Mode()&0o100 != 0 {
				list[name] = "x "
			}
			list[name] += string(data)
			return err
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// filesBut is files without one that cannot be read.
func (r repo) filesBut(name string) map[string]string {
	r.t.Helper()
	aside := filepath.Join(r.t.TempDir(), "aside")
	if err := os.Rename(r.path(name), aside); err != nil {
		r.t.Fatal(err)
	}
	list := r.files()
	if err := os.Rename(aside, r.path(name)); err != nil {
		r.t.Fatal(err)
	}
	return list
}

func gitProgram(t testing.TB) string {
	t.Helper()
	path := gitops.FindGit(os.Getenv("PATH"), "")
	if path == "" {
		t.Skip("there is no git")
	}
	return path
}

func (r repo) open(git string) *gitops.Checkout {
	r.t.Helper()
	c, err := gitops.Open(r.t.Context(), gitops.Options{Dir: r.dir, Git: git, State: r.t.TempDir()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return c
}

func snapshot(t testing.TB, c *gitops.Checkout) *gitops.Snapshot {
	t.Helper()
	dirty, err := c.Dirty(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(dirty) > 0 {
		t.Fatalf("dirty before anything was done: %q", dirty)
	}
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func changes(t testing.TB, c *gitops.Checkout, snap *gitops.Snapshot) *gitops.ChangeSet {
	t.Helper()
	cs, err := c.Changes(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func commit(t testing.TB, c *gitops.Checkout, cs *gitops.ChangeSet) string {
	t.Helper()
	who := gitops.Signature{Name: "agent-ci", Email: "agent-ci@noreply.invalid", When: time.Unix(1_700_000_000, 0)}
	sha, err := c.WriteCommit(t.Context(), cs, gitops.CommitOptions{
		Message: "Change it\n\nWhy.\n\nAgent-CI-Run: r1\nAgent-CI-Base: " + cs.Base.SHA + "\n", Author: who, Committer: who,
	})
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// nameStatus is a change set as `git diff --name-status` writes it.
func nameStatus(cs *gitops.ChangeSet) []string {
	var list []string
	for _, f := range cs.Files {
		list = append(list, string(f.Status)+" "+f.Path)
	}
	slices.Sort(list)
	return list
}

func (r repo) diffNameStatus(a, b string) []string {
	r.t.Helper()
	out := r.git("diff", "--no-renames", "--name-status", "-z", a, b)
	parts := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	var list []string
	for i := 0; i+1 < len(parts); i += 2 {
		list = append(list, parts[i]+" "+parts[i+1])
	}
	slices.Sort(list)
	return list
}

func (r repo) status() []string {
	r.t.Helper()
	out := r.git("status", "--porcelain", "-z", "--untracked-files=all")
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// reread compares the work tree with HEAD by content alone.
func (r repo) reread() []string {
	r.t.Helper()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(r.t.TempDir(), "index")}
	r.gitWith(env, nil, "read-tree", "HEAD")
	out := r.gitWith(env, nil, "status", "--porcelain", "-z", "--untracked-files=no")
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
