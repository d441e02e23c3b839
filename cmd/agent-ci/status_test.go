package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// sitting is somebody at a terminal in which agent-ci runs.
type sitting struct {
	t      *testing.T
	cmd    *exec.Cmd
	keys   *os.File
	screen *screen
	whole  strings.Builder // what was written
}

const sittingRows, sittingColumns = 30, 100

// sit starts agent-ci at a terminal. The screen has what it writes as far as sees and ends read it.
func (w *workshop) sit(env []string, args ...string) *sitting {
	w.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = filepath.Join(w.dir, "widgets"), append(slices.Clone(w.env), env...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: sittingRows, Cols: sittingColumns})
	if err != nil {
		w.t.Fatal(err)
	}
	killLate(w.t, cmd)
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		terminal.Close()
	})
	return &sitting{t: w.t, cmd: cmd, keys: terminal, screen: newScreen(sittingColumns)}
}

// read takes what comes next; false after the end.
func (s *sitting) read() bool {
	chunk := make([]byte, 4096)
	n, err := s.keys.Read(chunk)
	s.whole.Write(chunk[:n])
	s.screen.write(chunk[:n])
	return err == nil
}

func (s *sitting) resize(columns int) {
	s.t.Helper()
	s.screen.columns = columns
	if err := pty.Setsize(s.keys, &pty.Winsize{Rows: sittingRows, Cols: uint16(columns)}); err != nil {
		s.t.Fatal(err)
	}
}

// sees waits until the status line has all these words, and gives it.
func (s *sitting) sees(words ...string) string {
	s.t.Helper()
	for {
		status := s.screen.status()
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(status, word) }) {
			return status
		}
		if !s.read() {
			s.t.Fatalf("%q were not shown:\n%s", words, strings.Join(s.screen.shown(sittingRows), "\n"))
		}
	}
}

// ends waits for the end of the program, and gives what then stands on the screen.
func (s *sitting) ends() string {
	for s.read() {
	}
	_ = s.cmd.Wait()
	return strings.Join(s.screen.shown(sittingRows), "\n")
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
	w.git(filepath.Join(w.dir, "widgets"), "init", "--quiet", "--initial-branch=main")
	w.git(filepath.Join(w.dir, "widgets"), "add", "--all")
	w.git(filepath.Join(w.dir, "widgets"), "commit", "--quiet", "--message=begin")
	return w
}

// A terminal shows at each moment what the run is waiting for, below the lines of what has
// happened, and at the end nothing but these.
func TestATerminalShowsWhatRuns(t *testing.T) {
	t.Parallel()
	w := newStatusWorkshop(t)
	out := filepath.Join(w.dir, "run")
	s := w.sit([]string{"TERM=xterm-256color"}, "run", "../job.yml", "--replay", "../session.yml", "--publish", "none", "--out", out)
	open := func(gate string) { w.write(filepath.Join("gates", gate), "") }
	s.sees("[Setup ", "] setup command dependencies of all that is built 0:")
	s.resize(40)
	s.sees("[Setup ", "] setup command depe", "… 0:")
	if rows := s.screen.shown(2); strings.HasPrefix(rows[0], "[") || !strings.HasPrefix(rows[1], "[Setup ") || len([]rune(rows[1])) > 39 {
		t.Errorf("in 40 columns it is\n%s", strings.Join(rows, "\n"))
	}
	s.resize(sittingColumns)
	open("setup")
	s.sees("[Baseline ", "] check tests")
	open("base")
	if got := s.sees("[Agent ", "exec_command printf", "step 2/3: Mend 世界␛[2J", " · $0.25 of $1.00"); len([]rune(got)) >= sittingColumns {
		t.Errorf("it fills the last column: %q", got)
	}
	open("command")
	s.sees("[Verification ", "] check tests")
	open("change")
	shown := s.ends()
	if status := s.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if len(s.screen.faults) > 0 || !s.screen.wraps {
		t.Errorf("the terminal was steered by %q", s.screen.faults)
	}
	if !strings.Contains(s.whole.String(), "\x1b[36m[Setup ") {
		t.Error("it has no colour")
	}
	if strings.Contains("\n"+shown, "\n[") {
		t.Errorf("a status line stays:\n%s", shown)
	}
	for _, once := range []string{
		"agent-ci: turn 1\nagent-ci:   update_plan\nagent-ci:   plan: 1 of 3 done, now: Mend 世界", "\nagent-ci: turn 2; so far 25,000 tokens in (0 cached), 300 out, $0.2530\nagent-ci:   exec_command echo",
		"\nagent-ci: used 4 turns, ", "\nchanged/left_in_checkout: ",
	} {
		if n := strings.Count("\n"+shown, once); n != 1 {
			t.Errorf("%q stands there %d times:\n%s", once, n, shown)
		}
	}
}

// What is no terminal that can be drawn on, and whoever wants no colour, get none of it.
func TestTerminalsWithoutStatusOrColor(t *testing.T) {
	t.Parallel()
	w := newStatusWorkshop(t)
	for _, gate := range []string{"setup", "base"} {
		w.write(filepath.Join("gates", gate), "")
	}
	for i, c := range []struct {
		env       []string
		args      []string
		status    bool
		sequences bool
	}{
		{env: []string{"TERM=xterm", "NO_COLOR=1"}, status: true, sequences: true},
		{env: []string{"TERM=dumb"}},
		{env: nil}, // no TERM
		{env: []string{"TERM=xterm"}, args: []string{"--json"}},
		{env: []string{"TERM=xterm"}, args: []string{"--quiet"}},
	} {
		name := strings.Join(append(c.env, c.args...), " ")
		out := filepath.Join(w.dir, fmt.Sprintf("run-%d", i))
		s := w.sit(c.env, append([]string{"run", "../job.yml", "--replay", "../hang.yml", "--publish", "none", "--out", out}, c.args...)...)
		if c.status {
			s.sees("[Agent ", "waiting for the model")
		} else {
			awaitFile(filepath.Join(out, "transcript.jsonl"), 1)
		}
		if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		shown := s.ends()
		whole := s.whole.String()
		if strings.Contains(whole, "\x1b") != c.sequences || strings.Contains(whole, "\x1b[36m") || len(s.screen.faults) > 0 {
			t.Errorf("%s: it writes %q", name, whole)
		}
		status := regexp.MustCompile(`(?m)^\[[A-Z]`) // a wrapped line of JSON may begin with a bracket, too
		if status.MatchString(shown) || !strings.Contains(shown, "cancelled/sigint: ") {
			t.Errorf("%s: at the end stands\n%s", name, shown)
		}
		if got := s.cmd.ProcessState.ExitCode(); got != 130 {
			t.Errorf("%s: exit status %d", name, got)
		}
	}
}
