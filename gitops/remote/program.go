package remote

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// stopPatience is how long a git program that was told to stop may tidy up.
const stopPatience = 5 * time.Second

// passedOn are the variables that a git program gets. Tokens and keys of this
// process are not among them, nor what names another repository.
var passedOn = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "TMPDIR": true, "XDG_CONFIG_HOME": true,
	"SSH_AUTH_SOCK": true, "GIT_SSH_COMMAND": true, "GIT_SSL_CAINFO": true, "SSL_CERT_FILE": true, "SSL_CERT_DIR": true,
	"GIT_CONFIG_GLOBAL": true, "GIT_CONFIG_SYSTEM": true, "GIT_CONFIG_NOSYSTEM": true,
	"http_proxy": true, "https_proxy": true, "HTTPS_PROXY": true, "no_proxy": true, "NO_PROXY": true, "ALL_PROXY": true, "all_proxy": true,
}

func gitEnvironment(more ...string) []string {
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never", "GIT_ASKPASS=", "GIT_SSH_COMMAND=ssh -o BatchMode=yes"}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if passedOn[name] {
			env = append(env, variable)
		}
	}
	return append(env, more...)
}

// gitCommand is a git that stops, and tidies up, when ctx ends. It runs in the
// root folder, where no repository's configuration is read.
func gitCommand(ctx context.Context, git string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, git, args...)
	cmd.Dir, cmd.Env = "/", env
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
	cmd := gitCommand(ctx, o.Git, env, "receive-pack", path)
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
