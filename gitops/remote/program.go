package remote

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// stopPatience is how long a git program that was told to stop may tidy up.
const stopPatience = 5 * time.Second

// gitEnvironment returns the environment of a git program. Tokens and keys of this process are not in it, nor
// what names another repository. A relative part of PATH is left out: git works in checkouts, which could
// hold a program of a filter's name.
func gitEnvironment(more ...string) []string {
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never", "GIT_ASKPASS=", "GIT_SSH_COMMAND=ssh -o BatchMode=yes"}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if name == "PATH" {
			if value = program.PathOutside(value, ""); value == "" {
				continue // an empty list names the current folder
			}
			variable = name + "=" + value
		}
		if outside.GitRemote.Takes(name) {
			env = append(env, variable)
		}
	}
	return append(env, more...)
}

// gitCommand is a git that stops, and tidies up, when ctx ends. It runs in the
// root folder, where no repository's configuration is read.
func gitCommand(ctx context.Context, use *outside.Use, git string, env []string, args ...string) *exec.Cmd {
	cmd := use.Command(ctx, git, outside.Root, env, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopPatience
	return cmd
}

// receiveHere starts git-receive-pack on a repository of this machine. It runs
// the hooks of that repository, as every push to it does.
func receiveHere(ctx context.Context, o PushOptions, path string) (*pipeSession, error) {
	env := gitEnvironment()
	if o.Path != "" {
		env = append(env, "PATH="+o.Path)
	}
	cmd := gitCommand(ctx, outside.GitReceive, o.Git, env, "receive-pack", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said := &words{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start git receive-pack: %w", err)
	}
	end := func() (string, error) {
		err := cmd.Wait()
		return said.String(), err
	}
	return &pipeSession{service: transport.ReceivePackServiceName, in: in, out: out, end: end}, nil
}

// cloneByGit has git clone. What http and local remotes have is asked first,
// for errors that can be told apart, and for the address behind a redirect:
// git would take the token's header along to another host.
func cloneByGit(ctx context.Context, r Remote, o CloneOptions) (string, error) {
	source, err := r.source(ctx, o)
	if err != nil {
		return "", err
	}
	env := gitEnvironment(source.config...)
	args := append(cloneArguments(o, source.local), "--", source.url, o.Dir)
	if _, err := runGit(ctx, o.Git, env, args...); err != nil {
		return "", r.failed(ctx, "clone", err)
	}
	if !source.local && source.url != r.Name() { // a redirect led elsewhere: origin is what was asked for
		if _, err := runGit(ctx, o.Git, env, "-C", o.Dir, "config", "remote.origin.url", r.Name()); err != nil {
			return "", r.failed(ctx, "clone", err)
		}
	}
	sha, err := runGit(ctx, o.Git, env, "-C", o.Dir, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", &failure{doing: "clone " + r.Name(), kind: ErrEmpty, remedy: remedyByKind[ErrEmpty], cause: err}
	}
	return strings.TrimSpace(sha), nil
}

// guarded are settings under which git starts no program that a repository names.
var guarded = []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"}

func cloneArguments(o CloneOptions, local bool) []string {
	args := append(slices.Clone(guarded), "clone", "--quiet", "--template=", "--no-recurse-submodules", "--no-checkout", "--origin=origin")
	if o.Branch != "" {
		args = append(args, "--branch="+o.Branch)
	}
	if local {
		args = append(args, "--no-hardlinks")
	}
	return args
}

// source is what git is told to clone, and the configuration for it.
type source struct {
	url    string
	local  bool
	config []string // variables of git's environment
}

func (r Remote) source(ctx context.Context, o CloneOptions) (source, error) {
	endpoint, err := r.endpoint()
	if err != nil {
		return source{}, r.failed(ctx, "clone", err)
	}
	if endpoint.Protocol == "ssh" {
		return source{url: r.Name()}, nil // the ssh program has its own keys and names
	}
	session, advertised, err := r.advertised(ctx, "clone")
	if err != nil {
		return source{}, err
	}
	defer session.Close()
	if _, _, err := r.wanted(advertised, o.Branch); err != nil {
		return source{}, err
	}
	over, isHTTP := session.(httpUpload)
	if !isHTTP {
		return source{url: endpoint.Path, local: true}, nil
	}
	return source{url: over.http.cloneURL(), config: over.http.gitConfig()}, nil
}

// gitConfig tells git the credentials of the host by its environment, where
// neither a process list nor a file shows them.
func (t *httpTransport) gitConfig() []string {
	config := [][2]string{{"http.followRedirects", "false"}}
	if t.password != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(t.user + ":" + t.password))
		config = append(config,
			[2]string{"http." + t.origin + "/.extraHeader", "Authorization: Basic " + basic},
			[2]string{"credential.helper", ""})
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config))}
	for i, pair := range config {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, pair[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, pair[1]))
	}
	return env
}

func runGit(ctx context.Context, git string, env []string, args ...string) (string, error) {
	cmd := gitCommand(ctx, outside.GitRemote, git, env, args...)
	said, out := &words{}, &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if err != nil && said.String() != "" {
		return "", complaintError(said.String())
	}
	return out.String(), err
}
