// Package gittest makes repositories for tests, with the git program. It does not know the packages
// under test.
package gittest

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Run runs the tests of a package with a git configuration of its own, and returns the exit status.
func Run(m *testing.M) int {
	inOverlay()
	remove, err := Apart()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	home := filepath.Join(os.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config := filepath.Join(home, ".gitconfig")
	if err := os.WriteFile(config, []byte("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"),
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_SYSTEM": os.DevNull,
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
		"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
	} {
		os.Setenv(name, value)
	}
	return m.Run()
}

// Apart makes a folder for the temporary files of tests, outside any work tree. remove deletes it.
// The folder is in memory if there is room, because disks are much slower. TMPDIR selects another
// place.
func Apart() (remove func(), err error) {
	parent := os.Getenv("TMPDIR")
	if parent == "" {
		parent = memory()
	}
	dir, err := os.MkdirTemp(parent, "apart-")
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	err = errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir), os.Setenv(Ceiling, dir))
	return remove, err
}

// Ceiling is the variable that limits git's search for a repository upwards (git(1)).
const Ceiling = "GIT_CEILING_DIRECTORIES"

// Program returns the path of git. Without it the test is skipped.
func Program(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	return path
}

// Repo is a checkout made by the git program.
type Repo struct {
	T     testing.TB
	Dir   string
	enter []string // command that runs another program where Dir is; empty to run it directly
}

// New makes an empty repository on the branch main.
func New(t testing.TB) Repo {
	t.Helper()
	r := Repo{T: t, Dir: filepath.Join(t.TempDir(), "repo")}
	must.Do(t, Init(r.Dir))
	return r
}

// Seeded makes a repository with the commit of Seed.
func Seeded(t testing.TB) Repo {
	t.Helper()
	r := New(t)
	r.Seed()
	return r
}

// Init makes an empty repository of dir, on the branch main, without starting git.
func Init(dir string) error {
	config, err := initialConfig()
	if err != nil {
		return err
	}
	at := filepath.Join(dir, ".git")
	for _, folder := range []string{"info", "objects/info", "refs"} {
		if err := os.MkdirAll(filepath.Join(at, folder), 0o777); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(at, "HEAD"), []byte("ref: refs/heads/main\n"), 0o666),
		os.WriteFile(filepath.Join(at, "config"), []byte(config), 0o666),
	)
}

// initialConfig is the configuration of a new repository, which depends on the system. git is asked
// once, because it takes longer than all else that makes a repository.
var initialConfig = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "initial-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("git init: %w: %s", err, out)
	}
	config, err := os.ReadFile(filepath.Join(dir, ".git/config"))
	return string(config), err
})

// Git runs git and returns its output without the last newline.
func (r Repo) Git(args ...string) string {
	r.T.Helper()
	return r.GitWith(nil, nil, args...)
}

// GitWith runs git with additional environment variables and a standard input.
func (r Repo) GitWith(env []string, stdin []byte, args ...string) string {
	r.T.Helper()
	cmd := r.command("git", args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		r.T.Fatalf("git %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n")
}

// TryGit runs git and returns its error.
func (r Repo) TryGit(args ...string) error {
	return r.command("git", args...).Run()
}

// command returns a command that runs where Dir is.
func (r Repo) command(name string, args ...string) *exec.Cmd {
	if len(r.enter) == 0 {
		cmd := exec.Command(name, args...)
		cmd.Dir = r.Dir
		return cmd
	}
	args = append(append(slices.Clip(r.enter), name), args...)
	return exec.Command(args[0], args[1:]...)
}

// Path returns the path of a file in the checkout.
func (r Repo) Path(name string) string { return filepath.Join(r.Dir, filepath.FromSlash(name)) }

// Write writes a file with its folders.
func (r Repo) Write(name, content string) {
	r.T.Helper()
	must.Write(r.T, r.Path(name), content)
}

// WriteAll writes files, given by their names.
func (r Repo) WriteAll(files map[string]string) {
	r.T.Helper()
	for name, content := range files {
		r.Write(name, content)
	}
}

func (r Repo) Read(name string) string {
	r.T.Helper()
	data, err := os.ReadFile(r.Path(name))
	must.Do(r.T, err)
	return string(data)
}

// Sparse makes a file of size bytes without data.
func (r Repo) Sparse(name string, size int64) {
	r.T.Helper()
	r.Write(name, "")
	if err := os.Truncate(r.Path(name), size); errors.Is(err, syscall.EFBIG) {
		r.T.Skip("this file system has no files of such a size")
	} else if err != nil {
		r.T.Fatal(err)
	}
}

// Nest makes depth folders of the same name inside each other, with a file in the last one.
func (r Repo) Nest(name string, depth int) {
	r.T.Helper()
	at, err := os.OpenRoot(r.Dir)
	must.Do(r.T, err)
	for range depth {
		must.Do(r.T, at.Mkdir(name, 0o777))
		below, err := at.OpenRoot(name)
		must.Do(r.T, err)
		at.Close()
		at = below
	}
	defer at.Close()
	must.Do(r.T, at.WriteFile("file", []byte("deep\n"), 0o666))
}

// Link makes a symbolic link with its folders.
func (r Repo) Link(target, name string) {
	r.T.Helper()
	must.Do(r.T, os.MkdirAll(filepath.Dir(r.Path(name)), 0o777))
	must.Do(r.T, os.Symlink(target, r.Path(name)))
}

// Plant writes a loose blob with content into a git folder, under the id of another object.
func (r Repo) Plant(gitDir, id, content string) {
	r.T.Helper()
	name := filepath.Join(gitDir, "objects", id[:2], id[2:])
	r.Remove(name)
	r.Write(name, LooseBlob(content))
}

// LooseBlob returns a blob in the form of a loose object file.
func LooseBlob(content string) string {
	var b strings.Builder
	z := zlib.NewWriter(&b)
	fmt.Fprintf(z, "blob %d\x00%s", len(content), content)
	z.Close()
	return b.String()
}

// Remove removes files and folders.
func (r Repo) Remove(names ...string) {
	r.T.Helper()
	for _, name := range names {
		must.Do(r.T, os.RemoveAll(r.Path(name)))
	}
}

func (r Repo) Chmod(name string, mode fs.FileMode) {
	r.T.Helper()
	must.Do(r.T, os.Chmod(r.Path(name), mode))
}

// Commit commits everything.
func (r Repo) Commit(message string) {
	r.T.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", message)
}

// AddSubmodule adds a clone of another repository as a submodule.
func (r Repo) AddSubmodule(other Repo, name string) {
	r.T.Helper()
	r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.Dir, name)
}

// Seed makes the first commit that many tests use.
func (r Repo) Seed() {
	r.T.Helper()
	r.Write("README", "one\ntwo\n")
	r.Write("src/main.go", "package main\n")
	r.Write("src/deep/er/x", "x\n")
	r.Write("gone", "to be deleted\n")
	r.Commit("seed")
}

// Files returns all files outside .git: their content, with "x " before that of executable ones,
// and the targets of links.
func (r Repo) Files() map[string]string {
	r.T.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(r.Dir, path)
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
	must.Do(r.T, err)
	return list
}

// Shell runs filter commands without a sandbox.
type Shell struct {
	// Failed returns the error of a failed command.
	Failed func(status int, words string) error
}

// Run runs a shell command and returns the error of Failed if the command fails.
func (s Shell) Run(ctx context.Context, command string, content io.Reader, result io.Writer) error {
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = content, result, &words
	err := cmd.Run()
	if ended, is := errors.AsType[*exec.ExitError](err); is {
		return s.Failed(ended.ExitCode(), words.String())
	}
	return err
}

// Close does nothing.
func (Shell) Close() error { return nil }
