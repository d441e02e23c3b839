package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestLinesAreHarmless(t *testing.T) {
	var out bytes.Buffer
	Process{Stdout: &out}.Print("made %s: %d", "a\x1b[2J\nb\u202e", 2)
	must.Same(t, "made a␛[2J b‹U+202E›: 2\n", out.String())
}

// full is a writer without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestReport(t *testing.T) {
	_, lost := (&Output{Writer: full{}}).Write([]byte("x"))
	for name, test := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"no error":         {Exit(ExitOK, nil), 0, ""},
		"an error":         {errors.New("a\nb"), 1, "agent-ci x: a b\n"},
		"a signal":         {fmt.Errorf("ask: %w", context.Canceled), 1, "agent-ci x: it was stopped by a signal\n"},
		"a status alone":   {Exit(6, nil), 6, ""},
		"a status":         {Exit(6, errors.New("no")), 6, "agent-ci x: no\n"},
		"misuse":           {Misuse("there is no flag %s", "--a"), 2, "agent-ci x: there is no flag --a.\nRun agent-ci x --help to see its usage.\n"},
		"lost output":      {fmt.Errorf("write: %w", lost), 1, ""},
		"a lost last line": {Exit(3, lost), 3, ""},
	} {
		var stderr bytes.Buffer
		must.Same(t, test.status, Process{Stderr: &stderr}.Report("x", test.err), name)
		must.Same(t, test.want, stderr.String(), name)
	}
}
