package remote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// Store is a private git folder with agent-ci's configuration, and the git folders whose objects it
// borrows.
type Store struct {
	Dir      string
	Borrowed []string
}

// environment returns the environment variables that point git to the store and its borrowed
// objects.
func (s Store) environment() []string {
	if s.Dir == "" {
		return nil
	}
	env := []string{"GIT_DIR=" + s.Dir}
	if len(s.Borrowed) > 0 {
		var folders []string
		for _, dir := range s.Borrowed {
			folders = append(folders, repository.QuoteAlternate(filepath.Join(dir, "objects")))
		}
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(folders, ":"))
	}
	return env
}

// setting is a git configuration variable for the environment. Unlike options of git, the
// environment can hold any key, and git hides it from the hooks of the receiving repository.
type setting struct{ key, value string }

// safeSettings prevent programs named by repositories, background tasks and redirects. git gives up
// after ten minutes without data.
var safeSettings = []setting{
	{"core.hooksPath", os.DevNull},
	{"core.fsmonitor", "false"},
	{"core.alternateRefsCommand", "true"}, // otherwise git lists the references of lending repositories, with their configuration
	{"http.followRedirects", "false"},
	{"http.lowSpeedLimit", "1"},
	{"http.lowSpeedTime", "600"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"submodule.recurse", "false"},
	{"fetch.recurseSubmodules", "false"},
	{"fetch.unpackLimit", "1"},
	{"push.recurseSubmodules", "no"},
	{"push.followTags", "false"},
	{"push.gpgSign", "false"},
	{"push.pushOption", ""},
	{"init.defaultRefFormat", "files"},
	{"init.defaultObjectFormat", "sha1"},
}

// environmentOf returns settings as the environment variables that git reads.
func environmentOf(settings []setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.value))
	}
	return env
}

// credentialHelper is a git credential helper that prints user and password from file descriptor 3. Shells
// read a pipe byte by byte, so read leaves the next line for the next command.
const credentialHelper = `!f() { test "$1" != get || { IFS= read -r user <&3 && IFS= read -r password <&3 && printf 'username=%s\npassword=%s\n' "$user" "$password"; }; }; f`

// settings returns the git settings for a remote. address is the address to use, which may be a redirect
// of t.address. The settings override the user's insteadOf, and offer credentials to no other host.
func (t target) settings(address string) []setting {
	all := append([]setting{}, safeSettings...)
	all = append(all, setting{"protocol.allow", "never"}, setting{"protocol." + t.scheme + ".allow", "always"})
	all = append(all, setting{"url." + address + ".insteadOf", t.address}, setting{"url." + address + ".pushInsteadOf", t.address})
	if t.password != "" {
		all = append(all, setting{"credential.helper", ""}, setting{"credential." + t.host + ".helper", credentialHelper})
	}
	return all
}

// git runs git with options, the remote's address and further arguments. It returns the standard
// output, up to maxOutput bytes, and the messages of both sides. If the server redirects to an
// address on the same host, it runs git again with that address.
func (r Remote) git(ctx context.Context, store Store, options []string, arguments ...string) (string, *gitStderr, error) {
	target, err := r.target()
	if err != nil {
		return "", &gitStderr{}, err
	}
	args := slices.Concat(options, []string{"--", target.address}, arguments)
	env, login := store.environment(), ""
	if target.password != "" {
		login = target.user + "\n" + target.password + "\n"
	}
	run := func(address string) (string, *gitStderr, error) {
		return runGit(ctx, r.Path, login, slices.Concat(env, environmentOf(target.settings(address))), args...)
	}
	out, stderr, err := run(target.address)
	if err == nil || !stderr.wasRedirected() || ctx.Err() != nil {
		return out, stderr, err
	}
	address, err := r.redirectedAddress(ctx)
	if err != nil {
		return "", stderr, err
	}
	return run(address)
}

// maxOutput is the largest standard output in bytes. A list of branches has some 60 bytes per
// branch.
const maxOutput = 128 << 20

// runGit runs the git found in path. It runs in the root folder, outside all repositories. login is
// user and password, one per line, or "". A pipe passes it to git's children, so that no command
// line, file or environment contains it.
func runGit(ctx context.Context, path, login string, env []string, args ...string) (string, *gitStderr, error) {
	stderr, out := newStderr(), &limitedWriter{maxBytes: maxOutput}
	git := program.Remote(path, os.Environ()).With(env...)
	if git.Path == "" {
		return "", stderr, &program.UnusableError{}
	}
	cmd := git.Command(ctx, outside.Root, syscall.SIGTERM, args...)
	cmd.Stdout, cmd.Stderr = out, stderr
	started, err := servePipe(cmd, login)
	if err == nil {
		err = cmd.Start()
		started()
	}
	if err == nil {
		err = cmd.Wait()
	}
	stderr.endLine()
	if err = cmp.Or(out.err, err); err != nil {
		err = &gitError{stderr, err}
	}
	return out.String(), stderr, err
}

// servePipe gives a program a pipe with text as file descriptor 3. It writes the text repeatedly,
// for every reader, until no process can read it any more. Call started after cmd.Start, even if
// that failed.
func servePipe(cmd *exec.Cmd, text string) (started func(), err error) {
	if text == "" {
		return func() {}, nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{reader}
	go func() {
		var err error
		for err == nil {
			_, err = io.WriteString(writer, text)
		}
		_ = writer.Close()
	}()
	return func() { _ = reader.Close() }, nil
}

// limitedWriter is a buffer that fails after maxBytes bytes.
type limitedWriter struct {
	strings.Builder
	maxBytes int
	err      error
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.maxBytes {
		l.err = fmt.Errorf("git writes more than %d bytes", l.maxBytes)
		return 0, l.err
	}
	return l.Builder.Write(p)
}
