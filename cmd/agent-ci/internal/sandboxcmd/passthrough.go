package sandboxcmd

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
)

// running is a command whose input and output agent-ci copies. The command gets pipes or a terminal of
// its own: an inherited descriptor of a file or folder would give it access outside of the sandbox.
type running struct {
	process *sandbox.Process
	finish  func() // waits for the rest of the output, and restores the terminal
}

// startPiped starts a command with pipes. Its output and error output stay separate.
func startPiped(session *sandboxcommand.Session, p cli.Process, argv []string) (*running, error) {
	started, err := attached.Start(session.Start, sandbox.Command{Argv: argv}, attached.Streams{Output: copyTo(p.Stdout), Errors: copyTo(p.Stderr)})
	if err != nil {
		return nil, err
	}
	// Nothing waits for this goroutine, because a read of standard input cannot be interrupted. It ends
	// with agent-ci.
	go func() {
		_, _ = io.Copy(started.Input, p.Stdin)
		started.Input.Close()
	}()
	return &running{started.Process, func() { _, _ = started.Wait() }}, nil
}

// copyTo returns a function that copies its input to a writer until the input ends or a write fails. The command
// then gets SIGPIPE at its next write, as in a shell's pipeline.
func copyTo(to io.Writer) func(io.Reader) error {
	return func(from io.Reader) error {
		_ = attached.To(to)(from) // the writer of standard output reports what it lost
		return nil
	}
}

// startOnTerminal starts a command on a new terminal, shows its output on this one, and sends it each key at once.
func startOnTerminal(session *sandboxcommand.Session, p cli.Process, argv []string) (*running, error) {
	keyboard := p.Stdin.(*os.File)
	size, err := cli.WindowOf(keyboard)
	if err != nil {
		return nil, err
	}
	restore, err := makeRaw(keyboard)
	if err != nil {
		return nil, err
	}
	started, err := session.Start(sandbox.Command{Argv: argv, TTY: size, Output: p.Stdout})
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	ctx, stop := context.WithCancel(context.Background())
	var followers sync.WaitGroup
	followers.Go(func() { followSize(ctx, started, keyboard) })
	go sendKeys(ctx, started, keyboard) // not waited for: a read cannot be interrupted
	return &running{started, func() {
		stop()
		followers.Wait()
		_ = restore()
	}}, nil
}

// sendKeys sends typed keys to the command until it ends.
func sendKeys(ctx context.Context, started *sandbox.Process, keyboard io.Reader) {
	keys := make([]byte, 4096)
	for {
		n, err := keyboard.Read(keys)
		if err != nil || started.Type(ctx, string(keys[:n])) != nil {
			return
		}
	}
}

// followSize keeps the size of the command's terminal equal to this terminal's.
func followSize(ctx context.Context, started *sandbox.Process, terminal *os.File) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if size, err := cli.WindowOf(terminal); err == nil {
				_ = started.Resize(size) // the command may just have ended
			}
		}
	}
}

// makeRaw sets the terminal to raw mode (termios(3), cfmakeraw). Every key then reaches the command's
// terminal, which handles echo and interrupts.
func makeRaw(terminal *os.File) (restore func() error, err error) {
	return cli.ChangeTerminal(terminal, func(raw *unix.Termios) {
		raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		raw.Oflag &^= unix.OPOST
		raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	})
}
