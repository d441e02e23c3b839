package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is the tools with what a test looks at.
type bench struct {
	*testing.T
	dir      string
	commands *Tools
	d        *tools.Dispatcher
	seen     *journal
}

// journal keeps what was told of the call that ended last.
type journal struct {
	last    tools.Finished
	mutated bool // the call that started last
}

func (j *journal) Started(s tools.Started) error {
	j.mutated = s.Mutates
	return nil
}

func (j *journal) Finished(f tools.Finished) { j.last = f }

// newBench has the tools in a directory that has a folder sub.
func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	dir := t.TempDir()
	toolstest.Write(t, dir, map[string]string{"sub/file": ""})
	box := new(sandbox.Sandbox)
	o := Options{
		Sandbox: box, Dir: toolstest.Folder(t, dir), Outputs: new(tools.Outputs),
		Env: []string{"PATH=" + os.Getenv("PATH"), "MARK=seen", "LC_ALL=de_DE.UTF-8"},
	}
	for _, c := range change {
		c(&o)
	}
	all := New(o)
	t.Cleanup(func() {
		all.Close()
		must.Is(t, nil, box.Close())
	})
	seen := new(journal)
	return &bench{t, dir, all, &tools.Dispatcher{Registry: tools.New(all.All()...), Outputs: o.Outputs, Observer: seen}, seen}
}

// call calls a tool with arguments that are made JSON.
func (b *bench) call(ctx context.Context, name string, arguments map[string]any) tools.Result {
	b.Helper()
	input := must.Get(json.Marshal(arguments))(b)
	return b.d.Dispatch(ctx, []tools.Call{{ID: "call_1", Name: name, Input: string(input)}})[0]
}

// unifiedExec is the reference implementation's layout.
var unifiedExec = regexp.MustCompile(`(?s)^Chunk ID: ([0-9a-f]{6})\nWall time: \d+\.\d{4} seconds\n(?:Process exited with code (\d+)|Process running with session ID (\d+))\nOriginal token count: (\d+)\nOutput:\n(.*)$`)

type told struct{ exit, session, tokens, output string }

func (b *bench) parse(r tools.Result) told {
	b.Helper()
	m := unifiedExec.FindStringSubmatch(r.Output)
	if m == nil {
		b.Fatalf("not the layout:\n%s", r.Output)
	}
	return told{m[2], m[3], m[4], m[5]}
}

// ran checks the result of a command that has exited.
func (b *bench) ran(result tools.Result, want told, failed bool) {
	b.Helper()
	must.Same(b, want, b.parse(result))
	must.Same(b, failed, result.Failed, "failed")
}

// pipe makes a named pipe.
func (b *bench) pipe(name string) (path string) {
	b.Helper()
	path = filepath.Join(b.dir, name)
	must.Do(b, syscall.Mkfifo(path, 0o600))
	return path
}

// read reads a pipe in the background. The channel is told once nothing holds the pipe any more.
func read(pipe string) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		_, err := os.ReadFile(pipe)
		ended <- err
	}()
	return ended
}

// cancelOnce returns a context that ends when a command reads from the pipe. The pipe is held open
// until the test ends, so that nothing but the cancelling ends the command.
func (b *bench) cancelOnce(pipe string) context.Context {
	ctx, cancel := context.WithCancel(b.Context())
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the command reads
		cancel()
		opened <- f
	}()
	b.Cleanup(func() { (<-opened).Close() })
	return ctx
}

// say lets go a command that reads from the pipe.
func say(t *testing.T, pipe, words string) {
	t.Helper()
	must.Do(t, os.WriteFile(pipe, []byte(words), 0))
}

func TestExecCommand(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments map[string]any
		want      told
		failed    bool
	}{
		{"output and its final newline", map[string]any{"cmd": "echo hello"}, told{exit: "0", tokens: "2", output: "hello\n"}, false},
		{"no output", map[string]any{"cmd": "true"}, told{exit: "0", tokens: "0"}, false},
		{"exit code", map[string]any{"cmd": "echo no >&2; exit 3"}, told{exit: "3", tokens: "1", output: "no\n"}, true},
		{"signal", map[string]any{"cmd": "kill -TERM $$"}, told{exit: "143", tokens: "0"}, true},
		{"standard input is empty", map[string]any{"cmd": "cat; echo end"}, told{exit: "0", tokens: "1", output: "end\n"}, false},
		{"no terminal", map[string]any{"cmd": "(: </dev/tty) 2>/dev/null || echo none"}, told{exit: "0", tokens: "2", output: "none\n"}, false},
		{"environment", map[string]any{"cmd": "echo $MARK $LC_ALL $TERM; env | grep -c '^HOME=' || true"}, told{exit: "0", tokens: "5", output: "seen C.UTF-8 dumb\n0\n"}, false},
		{"shell", map[string]any{"cmd": "echo $0", "shell": "/bin/sh"}, told{exit: "0", tokens: "2", output: "/bin/sh\n"}, false},
		{"workdir", map[string]any{"cmd": "basename $PWD", "workdir": "sub"}, told{exit: "0", tokens: "1", output: "sub\n"}, false},
		{"published arguments", map[string]any{"cmd": "echo x", "sandbox_permissions": "use_default", "justification": "y", "timeout": 5000, "tty": false}, told{exit: "0", tokens: "1", output: "x\n"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.ran(b.call(t.Context(), "exec_command", test.arguments), test.want, test.failed)
			if code, _ := strconv.Atoi(test.want.exit); b.seen.last.Result.Detail["exit_code"] != code {
				t.Errorf("detail is %v", b.seen.last.Result.Detail)
			}
		})
	}
}

func TestExecCommandRefuses(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments map[string]any
		want      string
	}{
		{"no directory", map[string]any{"cmd": "ls", "workdir": "gone"}, `exec_command failed for ` + "`ls`" + `: workdir "gone": there is no such directory`},
		{"a file", map[string]any{"cmd": "ls", "workdir": "sub/file"}, `workdir "sub/file" is not a directory`},
		{"outside", map[string]any{"cmd": "ls", "workdir": "../.."}, `workdir "../.." is outside`},
		{"outside by a link", map[string]any{"cmd": "ls", "workdir": "link"}, `workdir "link" is outside`},
		{"no such shell", map[string]any{"cmd": "ls", "shell": "no-such-shell"}, `"no-such-shell": executable file not found`},
		{"NUL", map[string]any{"cmd": "echo \x00"}, "invalid argument"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			toolstest.Link(t, b.dir, map[string]string{"link": "/"})
			must.Contain(t, toolstest.Failure(t, b.call(t.Context(), "exec_command", test.arguments)), test.want)
		})
	}
}

func TestPollsSessionToEnd(t *testing.T) {
	b := newBench(t)
	pipe := b.pipe("go")
	began := b.parse(b.call(t.Context(), "exec_command", map[string]any{"cmd": "echo one; read x <go; echo $x; exit 7", "yield_time_ms": 1}))
	session, err := strconv.Atoi(began.session)
	must.Do(t, err, began)
	for _, chars := range []string{"yes\n", "\x04"} {
		must.Contain(t, toolstest.Failure(t, b.call(t.Context(), "write_stdin", map[string]any{"session_id": session, "chars": chars})), "stdin is closed for this session; rerun exec_command with tty=true")
	}
	say(t, pipe, "two\n")
	end := b.parse(b.call(t.Context(), "write_stdin", map[string]any{"session_id": session}))
	must.Same(t, "7", end.exit, began, end)
	must.Same(t, "one\ntwo\n", began.output+end.output, began, end)
	if r := b.call(t.Context(), "write_stdin", map[string]any{"session_id": session}); !r.Failed || !strings.Contains(r.Output, fmt.Sprintf("write_stdin failed: Unknown process id %d. No session is running", session)) {
		t.Errorf("the ended session gives %+v", r)
	}
}

func TestInterruptsSession(t *testing.T) {
	b := newBench(t)
	up := read(b.pipe("ready"))
	began := b.parse(b.call(t.Context(), "exec_command", map[string]any{"cmd": "echo up >ready; exec sleep 3600", "yield_time_ms": 1}))
	must.Do(t, <-up)
	session, _ := strconv.Atoi(began.session)
	must.Same(t, "130", b.parse(b.call(t.Context(), "write_stdin", map[string]any{"session_id": session, "chars": interrupt, "yield_time_ms": 30000})).exit, began)
}

func TestCloseEndsSessions(t *testing.T) {
	b := newBench(t)
	held := b.pipe("held")
	gone := read(held)
	b.parse(b.call(t.Context(), "exec_command", map[string]any{"cmd": "exec 3>held; sleep 3600 & wait", "yield_time_ms": 1}))
	live := b.commands.sessions.live
	if len(live) != 1 {
		t.Fatalf("%d sessions", len(live))
	}
	b.commands.Close()
	must.Same(t, true, live[0].ended(), "the session's command still runs")
	if fd, err := syscall.Open(held, syscall.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		_ = syscall.Close(fd) // the command had not come to open it; the reader must not wait for ever
	}
	must.Do(t, <-gone)
}

func TestEvictsEndedSessionsFirst(t *testing.T) {
	b := newBench(t)
	all := b.commands
	b.pipe("go")
	begin := func(cmd string) *session {
		r, problem := all.start(commandRequest{callID: "x", argv: []string{"sh", "-c", cmd}, limit: time.Hour})
		if problem != "" {
			t.Fatal(problem)
		}
		return all.addSession(r, 0)
	}
	oldest, ended := begin("read x <go"), begin("true")
	<-ended.process.Done()
	for range sessionLimit - 3 {
		begin("read x <go")
	}
	recent := begin("true")
	<-recent.process.Done()
	if len(all.sessions.live) != sessionLimit || all.sessions.live[1] != ended {
		t.Errorf("%d sessions of %d, and one was pushed out", len(all.sessions.live), sessionLimit)
	}
	begin("read x <go")
	must.Same(t, true, all.sessions.markUsed(float64(ended.id)) == nil, "the session that had ended by itself goes first")
	if all.sessions.markUsed(float64(oldest.id)) == nil {
		t.Error("the oldest was pushed out before one that had ended")
	}
	second := all.sessions.live[0]
	begin("read x <go")
	if all.sessions.markUsed(float64(recent.id)) == nil {
		t.Error("a session that was just used was pushed out, as it had ended")
	}
	if second == oldest || !second.ended() || all.sessions.markUsed(float64(second.id)) != nil {
		t.Error("the least recently used was not pushed out")
	}
	must.Same(t, sessionLimit, len(all.sessions.live))
}

func TestTimeLimits(t *testing.T) {
	for _, test := range []struct {
		name, tool string
		arguments  map[string]any
		limit      time.Duration
		header     string
	}{
		{"exec_command asks", "exec_command", map[string]any{"cmd": "echo a; read x <go", "timeout_ms": 50}, time.Hour, "Process exited with code 124\n"},
		{"exec_command at the run's limit", "exec_command", map[string]any{"cmd": "echo a; read x <go"}, 50 * time.Millisecond, "Process exited with code 124\n"},
		{"shell_command asks", "shell_command", map[string]any{"command": "echo a; read x <go", "timeout_ms": 50}, time.Hour, "Exit code: 124\n"},
		{"shell gets no more than the run's limit", "shell", map[string]any{"command": []string{"sh", "-c", "echo a; read x <go"}, "timeout": 1e300}, 50 * time.Millisecond, "Exit code: 124\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.limit = test.limit })
			b.pipe("go")
			result := b.call(t.Context(), test.tool, test.arguments)
			for !strings.HasSuffix(result.Output, "\na\n") && result.Detail["timed_out"] == true { // a busy machine has not printed by then
				result = b.call(t.Context(), test.tool, test.arguments)
			}
			if !result.Failed || !strings.Contains(result.Output, test.header) || !strings.HasSuffix(result.Output, "Output:\ncommand timed out after 50 milliseconds\na\n") {
				t.Errorf("got %+v", result)
			}
			must.Same(t, map[string]any{"exit_code": 124, "timed_out": true}, result.Detail, "detail")
		})
	}
}

func TestCancelEndsCommand(t *testing.T) {
	script := "echo a; read x <go"
	for tool, arguments := range map[string]map[string]any{
		"exec_command":  {"cmd": script},
		"shell_command": {"command": script},
		"shell":         {"command": []string{"sh", "-c", script}},
	} {
		t.Run(tool, func(t *testing.T) {
			b := newBench(t)
			result := b.call(b.cancelOnce(b.pipe("go")), tool, arguments)
			if !result.Failed || !strings.HasPrefix(result.Output, "aborted after ") || !strings.HasSuffix(result.Output, "\nOutput:\na\n") {
				t.Errorf("got %+v", result)
			}
			must.Is(t, context.Canceled, b.seen.last.Fault, "fault is")
		})
	}
}

func TestShell(t *testing.T) {
	layout := regexp.MustCompile(`(?s)^Exit code: (\d+)\nWall time: \d+\.\d seconds\nOutput:\n(.*)$`)
	for _, test := range []struct {
		name, tool   string
		arguments    map[string]any
		exit, output string
	}{
		{"shell keeps words apart", "shell", map[string]any{"command": []string{"printf", "<%s>", "a b", "c"}}, "0", "<a b><c>"},
		{"shell_command is a script", "shell_command", map[string]any{"command": "echo a && exit 4"}, "4", "a\n"},
		{"workdir", "shell_command", map[string]any{"command": "pwd -P", "workdir": "."}, "0", "DIR\n"},
		{"login", "shell_command", map[string]any{"command": "echo ok", "login": false}, "0", "ok\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			real := must.Get(filepath.EvalSymlinks(b.dir))(t)
			result := b.call(t.Context(), test.tool, test.arguments)
			m := layout.FindStringSubmatch(result.Output)
			if m == nil || m[1] != test.exit || m[2] != strings.ReplaceAll(test.output, "DIR", real) || result.Failed != (test.exit != "0") {
				t.Errorf("got %+v", result)
			}
		})
	}
	b := newBench(t)
	must.Contain(t, toolstest.Failure(t, b.call(t.Context(), "shell", map[string]any{"command": []string{"no-such-program"}})), `shell failed: "no-such-program": executable file not found`)
}

// TestReplayedCallReturnsAsRecorded has a fast command whose call took longer in the record, and
// waits as long as a slow one takes.
func TestReplayedCallReturnsAsRecorded(t *testing.T) {
	before := []RecordedReturn{{Session: 1007}, {Session: 1007}, {Ended: true}}
	b := newBench(t, func(o *Options) {
		o.RecordedReturn = func(context.Context, tools.Call) (was RecordedReturn) {
			was, before = before[0], before[1:]
			return was
		}
	})
	for _, step := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"exec_command", map[string]any{"cmd": "echo printed"}, "Process running with session ID 1007\n"},
		{"write_stdin", map[string]any{"session_id": 1007}, "Process running with session ID 1007\n"},
		{"write_stdin", map[string]any{"session_id": 1007}, "Process exited with code 0\n"},
	} {
		must.Contain(t, b.call(t.Context(), step.tool, step.arguments).Output, step.want)
	}
	tool := New(Options{limit: time.Hour, RecordedReturn: func(context.Context, tools.Call) RecordedReturn { return RecordedReturn{Ended: true} }})
	if w := tool.waitModeFor(t.Context(), tools.Call{}, time.Second); w.timeout < time.Hour {
		t.Errorf("it waits for %s", w.timeout)
	}
}

func TestYieldTimes(t *testing.T) {
	for _, test := range []struct {
		yield, timeout float64
		want           time.Duration
	}{
		{0, 0, defaultYield},
		{1, 0, minYield},
		{250, 0, minYield},
		{30001, 0, maxYield},
		{12000, 5, 12 * time.Second},
		{1e300, 0, maxYield},
		{0, 1e9, maxYield},
		{-5, 0, defaultYield},
	} {
		must.Same(t, test.want, yieldTime(test.yield, test.timeout), test.yield, test.timeout)
	}
	for _, test := range []struct {
		chars string
		yield float64
		want  time.Duration
	}{
		{"", 0, minPoll},
		{"", 5001, 5001 * time.Millisecond},
		{"", 300_001, maxPoll},
		{interrupt, 0, minYield},
		{"x", 30_001, maxYield},
	} {
		must.Same(t, test.want, (stdinArguments{Chars: test.chars, YieldMS: test.yield}).waitLimit(), test.chars, test.yield)
	}
}
