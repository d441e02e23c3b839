//go:build unix

package attached_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
)

func shell(script string) sandbox.Command {
	return sandbox.Command{Argv: []string{"sh", "-c", script}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func TestRun(t *testing.T) {
	t.Parallel()
	tooMuch, unreadable := errors.New("too much"), errors.New("unreadable")
	for name, test := range map[string]struct {
		script string
		input  io.Reader
		want   string
		ending string
		err    error
	}{
		"reads its input":                {script: "cat; exit 3", input: strings.NewReader("in"), want: "in", ending: "ended with exit status 3"},
		"need not read its input":        {script: "echo out", input: strings.NewReader(strings.Repeat("x", 1<<20)), want: "out\n", ending: "ended with exit status 0"},
		"is killed for too much output":  {script: "while :; do echo 1234567; done", want: "1234567\n12", ending: "ended: too much", err: tooMuch},
		"is killed when its input fails": {script: "sleep 600", input: failing{unreadable}, ending: "ended: unreadable", err: unreadable},
		"was killed":                     {script: "kill -9 $$", ending: "was ended by killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := new(sandbox.Sandbox)
			var output bytes.Buffer
			if test.input == nil {
				test.input = strings.NewReader("")
			}
			status, err := attached.Run(t.Context(), box.Start, shell(test.script), attached.Streams{
				Input: test.input, Output: attached.UpTo(&output, 10, tooMuch), Errors: attached.To(io.Discard),
			})
			if output.String() != test.want || attached.Ending(status, err) != test.ending || !errors.Is(err, test.err) {
				t.Errorf("got %q, %q, %v", output.String(), attached.Ending(status, err), err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestCancelKillsProcessGroup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	status, err := attached.Run(ctx, new(sandbox.Sandbox).Start, shell("sleep 600 & echo started; wait"), attached.Streams{
		Output: func(r io.Reader) error {
			_, err := r.Read(make([]byte, 1))
			cancel()
			_, _ = io.Copy(io.Discard, r) // ends when no process of the group holds it
			return err
		},
		Errors: attached.To(io.Discard),
	})
	if err != nil || status.Signal == "" {
		t.Errorf("got %+v, %v", status, err)
	}
}

func TestRunReturnsDespiteHeldStreams(t *testing.T) {
	t.Parallel()
	var output bytes.Buffer
	status, err := attached.Run(t.Context(), new(sandbox.Sandbox).Start, shell("setsid sleep 600 & echo $!"), attached.Streams{
		Output: attached.To(&output), Errors: attached.To(io.Discard),
	})
	left, problem := strconv.Atoi(strings.TrimSpace(output.String()))
	if err != nil || status.ExitCode != 0 || problem != nil {
		t.Fatalf("got %+v, %v, %q", status, err, output.String())
	}
	must.Is(t, nil, syscall.Kill(left, syscall.SIGKILL), "the other process")
}
