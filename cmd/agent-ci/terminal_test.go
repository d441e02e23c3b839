package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// A person's terminal reaches a sandboxed command as one of its own: keys, size,
// Ctrl-C, and the exit status comes back.
func TestSandboxOnATerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "sandbox", "--", "sh", "-c", `trap 'echo interrupted; exit 5' INT; stty size; test -t 1 && echo terminal; read x; echo "got $x"; while :; do sleep 0.05; done`)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	if confines() == sandbox.LevelNone {
		cmd.Env = append(cmd.Env, openly)
	}
	terminal := must.Get(pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 101}))(t)
	defer terminal.Close()
	killLate(t, cmd)
	lines := bufio.NewReader(terminal)
	var said strings.Builder
	expect := func(words string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			said.WriteString(line)
			if strings.Contains(line, words) {
				return
			}
			must.Do(t, err, words, "did not come", said.String())
		}
	}
	press := func(keys string) {
		t.Helper()
		must.Do(t, must.Err(terminal.WriteString(keys)))
	}
	expect("33 101")
	expect("terminal")
	press("typed\r")
	expect("got typed")
	press("\x03")
	expect("interrupted")
	_ = cmd.Wait()
	must.Same(t, 5, cmd.ProcessState.ExitCode(), "the exit status", said.String())
}
