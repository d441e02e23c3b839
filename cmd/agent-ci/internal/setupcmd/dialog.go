package setupcmd

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
)

// dialog asks a person at the terminal.
type dialog struct {
	keyboard *os.File
	lines    *bufio.Reader
	screen   io.Writer
}

// newDialog returns a dialog with a person, or nil unless stdin, stdout and stderr are terminals.
func newDialog(p cli.Process) *dialog {
	keyboard, ok := p.Stdin.(*os.File)
	if !ok || !cli.OnTerminal(p) || !cli.IsTerminal(p.Stderr) {
		return nil
	}
	return &dialog{keyboard, bufio.NewReader(keyboard), p.Stderr}
}

// ask returns the answer to a question, or usual for an empty answer. It asks nothing if the answer is given,
// or without a person (nil).
func (d *dialog) ask(given, question, usual string) (string, error) {
	if given != "" || d == nil {
		return given, nil
	}
	if usual != "" {
		question += " [" + usual + "]"
	}
	fmt.Fprintf(d.screen, "%s: ", question)
	line, err := d.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return cmp.Or(strings.TrimSpace(line), usual), nil
}

// askChoice asks like ask, until the answer is one of known.
func (d *dialog) askChoice(given, question, usual string, known ...string) (string, error) {
	for {
		answer, err := d.ask(given, question, usual)
		if err != nil || d == nil || slices.Contains(known, answer) {
			return answer, err
		}
		fmt.Fprintf(d.screen, "Answer %s.\n", strings.Join(known, " or "))
	}
}

// confirm asks whether to go on. An empty answer means yes.
func (d *dialog) confirm() (yes bool, err error) {
	answer, err := d.ask("", "Go on? [Y/n]", "")
	return answer == "" || strings.HasPrefix(strings.ToLower(answer), "y"), err
}

var errInterrupted = errors.New("interrupted")

// askHidden asks like ask for a secret, without showing what is typed (termios(3), ECHO). It reads the keys itself,
// including Ctrl-C. A signal restores the terminal before it ends the process.
func (d *dialog) askHidden(given, question string) (secret string, err error) {
	if given != "" || d == nil {
		return given, nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, cli.UnlessNohup(syscall.SIGTERM, syscall.SIGHUP)...)
	defer signal.Stop(signals)
	restore, err := cli.ChangeTerminal(d.keyboard, func(hidden *unix.Termios) {
		hidden.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
		hidden.Cc[unix.VMIN], hidden.Cc[unix.VTIME] = 1, 0
	})
	if err != nil {
		return "", fmt.Errorf("hide what is typed: %w", err)
	}
	defer func() {
		err = errors.Join(err, restore())
		fmt.Fprintln(d.screen)
	}()
	defer exitOnSignal(signals, func() { _ = restore() })()
	fmt.Fprintf(d.screen, "%s (not shown): ", question)
	return d.readHidden()
}

// exitOnSignal waits for a signal in the background, calls clean, and lets the signal end the process.
func exitOnSignal(signals chan os.Signal, clean func()) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case s := <-signals:
			clean()
			signal.Stop(signals)
			_ = unix.Kill(os.Getpid(), s.(syscall.Signal))
		case <-quit:
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// readHidden reads keys up to Enter and returns the text before it. Backspace removes the last byte.
// Ctrl-C, or Ctrl-D without text, is errInterrupted.
func (d *dialog) readHidden() (string, error) {
	const longest, interrupt, end, backspace, erase = 4096, 0x03, 0x04, 0x08, 0x7f
	var text []byte
	for {
		key, err := d.lines.ReadByte()
		switch {
		case err != nil:
			return "", fmt.Errorf("read what is typed: %w", err)
		case key == interrupt || key == end && len(text) == 0:
			return "", errInterrupted
		case key == '\r' || key == '\n' || key == end:
			return strings.TrimSpace(string(text)), nil
		case key == backspace || key == erase:
			text = text[:max(len(text)-1, 0)]
		case len(text) == longest:
			return "", fmt.Errorf("it is longer than %d bytes", longest)
		default:
			text = append(text, key)
		}
	}
}
