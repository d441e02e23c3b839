package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/agent-ci/agent-ci/policy/must"
)

// sitting is somebody at a terminal in which agent-ci runs. How a status line is drawn is the tests' of package
// progress.
type sitting struct {
	t     *testing.T
	cmd   *exec.Cmd
	keys  *os.File
	whole strings.Builder // what was written
}

// sit starts agent-ci at a terminal.
func (w *workshop) sit(env []string, args ...string) *sitting {
	w.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = filepath.Join(w.dir, "widgets"), append(slices.Clone(w.env), env...)
	terminal := must.Get(pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100}))(w.t)
	killLate(w.t, cmd)
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		terminal.Close()
	})
	return &sitting{t: w.t, cmd: cmd, keys: terminal}
}

// read takes what comes next; false after the end.
func (s *sitting) read() bool {
	chunk := make([]byte, 4096)
	n, err := s.keys.Read(chunk)
	s.whole.Write(chunk[:n])
	return err == nil
}

// sees waits until these words were written, in whatever colour.
func (s *sitting) sees(words string) {
	s.t.Helper()
	for !strings.Contains(uncolored.Replace(s.whole.String()), words) {
		if !s.read() {
			whole := s.whole.String()
			s.t.Fatalf("%q was not shown; at the end stands %q", words, whole[max(0, len(whole)-1000):])
		}
	}
}

const (
	erasing = "\x1b[J"
	colored = "\x1b[36m"
)

var uncolored = strings.NewReplacer(colored, "", "\x1b[39m", "")

// ends waits for the end of the program. It returns all that was written, and what follows the last status line;
// nothing but the sequences of a status line may steer the terminal.
func (s *sitting) ends() (whole, rest string) {
	s.t.Helper()
	for s.read() {
	}
	_ = s.cmd.Wait()
	whole = s.whole.String()
	if plain := strings.NewReplacer(erasing, "", "\x1b[?7l", "", "\x1b[?7h", "").Replace(uncolored.Replace(whole)); strings.ContainsAny(plain, "\x1b\a") {
		s.t.Errorf("the terminal is steered by %q", plain)
	}
	rest = whole[max(0, strings.LastIndex(whole, erasing)):]
	rest = strings.TrimPrefix(rest, erasing)
	if strings.Contains(rest, "\x1b[?7l") {
		s.t.Errorf("a status line stays: %q", rest)
	}
	return whole, strings.ReplaceAll(rest, "\r\n", "\n")
}

// newStatusWorkshop has a job whose commands wait for files in the folder gates.
func newStatusWorkshop(t *testing.T) workshop {
	w := newWorkshop(t)
	gate := filepath.Join(w.dir, "gates")
	wait := func(name string) string { return "until [ -e " + filepath.Join(gate, name) + " ]; do sleep 0.05; done" }
	w.write("gates/.keep", "")
	w.write("widgets/greet.sh", "echo hello nobody\n")
	w.write("job.yml", `version: 1
task: {prompt: Make greet.sh greet the world}
policy: {writable: [`+gate+`]}
limits: {cost_usd: 1}
model: {price: {input: 10, cached: 10, output: 10}}
setup: [{name: dependencies of all that is built, run: "`+wait("setup")+`"}]
verify: [{name: tests, run: "if grep -q world greet.sh; then `+wait("change")+`; else `+wait("base")+`; fi; sh greet.sh"}]
`)
	w.write("session.yml", `version: 1
turns:
  - output:
      - call: update_plan
        arguments: {plan: [{step: Look, status: completed}, {step: "Mend 世界\u001b[2J\u202e", status: in_progress}, {step: Run the tests, status: pending}]}
      - {call: exec_command, arguments: {cmd: "printf '\\033[2J\\033[31m\\007'; `+wait("command")+`", yield_time_ms: 30000}}
    usage: {input: 25000, output: 300}
  - output:
      - {call: exec_command, arguments: {cmd: "echo echo hello world >greet.sh"}}
    usage: {input: 1000}
  - output: [{say: "It greets \u001b[2Jthe world."}]
    usage: {input: 1000}
  - output: [{say: "It greets \u001b[2Jthe world."}]
    usage: {input: 1000}
`)
	w.write("hang.yml", "version: 1\nturns: [{hang: true}]\n")
	w.repository(filepath.Join(w.dir, "widgets"))
	return w
}

// A terminal shows what the run is waiting for, below the lines of what has happened, and at the end nothing but
// these.
func TestTerminalShowsRunningWork(t *testing.T) {
	t.Parallel()
	w := newStatusWorkshop(t)
	out := filepath.Join(w.dir, "run")
	s := w.sit([]string{"TERM=xterm-256color"}, "run", "../job.yml", "--replay", "../session.yml", "--publish", "none", "--out", out)
	s.sees("] setup command dependencies of all that is built 0:")
	must.Do(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 30, Cols: 40}))
	s.sees("] setup command depe")
	s.sees("… 0:")
	must.Do(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 30, Cols: 100}))
	for _, at := range []struct{ words, gate string }{{"[Setup ", "setup"}, {"[Baseline ", "base"}, {" · $0.25 of $1.00", "command"}, {"[Verification ", "change"}} {
		s.sees(at.words)
		w.write(filepath.Join("gates", at.gate), "")
	}
	whole, rest := s.ends()
	must.Same(t, 0, s.cmd.ProcessState.ExitCode(), "exit status")
	must.Contain(t, whole, colored+"[Setup ", "step 2/3: Mend 世界␛[2J")
	for _, once := range []string{"agent-ci: turn 1\r\n", "agent-ci:   plan: 1 of 3 done, now: Mend 世界", "agent-ci: turn 2; so far 25,000 tokens in", "agent-ci: used 4 turns, "} {
		must.Same(t, 1, strings.Count(whole, once), once, "stands there", "times", whole)
	}
	must.Same(t, true, strings.HasPrefix(rest, "changed/left_in_checkout: "), "at the end stands", rest)
}

// What is no terminal that can be drawn on, and whoever wants no colour, get none of it.
func TestPlainTerminalsGetNoStatusOrColor(t *testing.T) {
	t.Parallel()
	w := newStatusWorkshop(t)
	for _, gate := range []string{"setup", "base"} {
		w.write(filepath.Join("gates", gate), "")
	}
	for i, c := range []struct {
		env    []string
		args   []string
		status bool
	}{
		{env: []string{"TERM=xterm", "NO_COLOR=1"}, status: true},
		{env: []string{"TERM=dumb"}},
		{env: nil}, // no TERM
		{env: []string{"TERM=xterm"}, args: []string{"--json"}},
		{env: []string{"TERM=xterm"}, args: []string{"--quiet"}},
	} {
		name := strings.Join(append(c.env, c.args...), " ")
		out := filepath.Join(w.dir, fmt.Sprintf("run-%d", i))
		s := w.sit(c.env, append([]string{"run", "../job.yml", "--replay", "../hang.yml", "--publish", "none", "--out", out}, c.args...)...)
		if c.status {
			s.sees("waiting for the model")
		} else {
			awaitFile(filepath.Join(out, "transcript.jsonl"), 1)
		}
		must.Do(t, s.cmd.Process.Signal(syscall.SIGINT))
		whole, rest := s.ends()
		if strings.Contains(whole, "\x1b") != c.status || strings.Contains(whole, colored) {
			t.Errorf("%s: it writes %q", name, whole)
		}
		must.Same(t, true, strings.Contains(rest, "cancelled/sigint: "), name, "at the end stands", rest)
		must.Same(t, 130, s.cmd.ProcessState.ExitCode(), name, "exit status")
	}
}
