package command

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func TestExecCommandUsesTerminal(t *testing.T) {
	for _, test := range []struct {
		name, cmd string
		want      told
		failed    bool
	}{
		{"is one", "test -t 0 && test -t 1 && test -t 2 && stty size", told{exit: "0", tokens: "2", output: "24 80\n"}, false},
		{"final newlines stay", `printf 'a\n\n'`, told{exit: "0", tokens: "1", output: "a\n\n"}, false},
		{"no newline is added", `printf a`, told{exit: "0", tokens: "1", output: "a"}, false},
		{"progress bars stay", `printf '50%%\r\r100%%\r\n'`, told{exit: "0", tokens: "3", output: "50%\r100%\n"}, false},
		{"exit code", "exit 3", told{exit: "3", tokens: "0"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.ran(b.call(t.Context(), "exec_command", map[string]any{"cmd": test.cmd, "tty": true}), test.want, test.failed)
		})
	}
}

func TestNormalizesTerminalNewlines(t *testing.T) {
	for _, test := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"one", []string{"a\r\nb\r\n"}, "a\nb\n"},
		{"cut in two", []string{"a\r", "\nb"}, "a\nb"},
		{"doubled", []string{"a\r\r\n", "\r", "\r\n"}, "a\n\n"},
		{"alone", []string{"a\rb", "\r", "c"}, "a\rb\rc"},
		{"at the end", []string{"a\r"}, "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got bytes.Buffer
			lines := plainLines{to: &got}
			for _, piece := range test.pieces {
				if n, err := lines.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			must.Same(t, test.want, got.String())
		})
	}
}

// inTerminal begins a session in a terminal, waits until its command has come
// behind its first line and returns its number.
func (b *bench) inTerminal(first, rest string) (session int) {
	b.Helper()
	up := read(b.pipe("ready")) // which ends when the command has opened and closed it
	began := b.parse(b.call(b.Context(), "exec_command", map[string]any{"cmd": first + "\n: >ready\n" + rest, "tty": true, "yield_time_ms": 1}))
	must.Do(b, <-up)
	session, err := strconv.Atoi(began.session)
	must.Do(b, err, began, "want a session")
	return session
}

func TestWriteStdinTypesIntoTerminal(t *testing.T) {
	for _, test := range []struct {
		name, first, rest string
		chars             []string
		exit, output      string
		before            bool // there may be output before that
	}{
		{"lines", "stty -echo", "read x; echo it is $x; read y; echo and $y; exit 7", []string{"one\n", "two\n"}, "7", "it is one\nand two\n", false},
		{"Ctrl-C", "trap 'echo caught; exit 5' INT", "while :; do read x; done", []string{interrupt}, "5", "caught\n", true},
		{"the end of input", "stty -echo", "cat >/dev/null; echo done", []string{"text\n\x04"}, "0", "done\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			session := b.inTerminal(test.first, test.rest)
			var got told
			output := ""
			for i, chars := range test.chars {
				arguments := map[string]any{"session_id": session, "chars": chars}
				if i == len(test.chars)-1 {
					arguments["yield_time_ms"] = 30000
				}
				if got = b.parse(b.call(t.Context(), "write_stdin", arguments)); got.exit == "" && got.session != strconv.Itoa(session) {
					t.Errorf("the session is not told of: %+v", got)
				}
				output += got.output
			}
			if got.exit != test.exit || !strings.HasSuffix(output, test.output) || !test.before && output != test.output {
				t.Errorf("got %+v, and in all %q", got, output)
			}
		})
	}
}

func TestWriteStdinReportsUnreadInput(t *testing.T) {
	b := newBench(t)
	session := b.inTerminal("stty raw -echo", "exec sleep 3600")
	arguments := map[string]any{"session_id": session, "chars": strings.Repeat("x", 1<<20)}
	must.Contain(t, toolstest.Failure(t, b.call(t.Context(), "write_stdin", arguments)), "write_stdin failed: ", "the command does not read")
}

func TestCancelledWriteStdinKeepsCommand(t *testing.T) {
	b := newBench(t)
	session := b.inTerminal("", "exec sleep 3600")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := b.commands.sessions.markUsed(float64(session))
	if r := b.call(ctx, "write_stdin", map[string]any{"session_id": session}); !r.Failed || !strings.HasPrefix(r.Output, "aborted after ") {
		t.Errorf("got %+v", r)
	}
	must.Same(t, false, s.ended(), "the command has ended with the call")
}
