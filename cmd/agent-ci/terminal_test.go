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
			if err != nil {
				t.Fatalf("%q did not come (%v):\n%s", words, err, said.String())
			}
		}
	}
	press := func(keys string) {
		t.Helper()
		if _, err := terminal.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	expect("33 101")
	expect("terminal")
	press("typed\r")
	expect("got typed")
	press("\x03")
	expect("interrupted")
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 5 {
		t.Errorf("the exit status is %d, want 5\n%s", status, said.String())
	}
}
