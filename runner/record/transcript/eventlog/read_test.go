package eventlog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestReadErrors(t *testing.T) {
	whole := transcripttest.Recorded(t, transcripttest.Greeting()[:2])
	broken := errors.New("broken pipe")
	tests := []struct {
		name   string
		text   string
		events int
		want   string
	}{
		{"nothing", "", 0, ""},
		{"torn line", whole + `{"v":1,"se`, 2, "transcript line 3 is torn"},
		{"a whole line but for its newline", strings.TrimSuffix(whole, "\n"), 1, "transcript line 2 is torn"},
		{"no JSON", whole + "hello\n", 2, "transcript line 3 is not an event"},
		{"empty line", whole + "\n", 2, "transcript line 3 is not an event"},
		{"other version", strings.Replace(whole, `{"v":1,"seq":2`, `{"v":2,"seq":2`, 1), 1, "version 2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			events := 0
			var last error
			for _, err := range eventlog.Read(strings.NewReader(test.text)) {
				if last = err; err == nil {
					events++
				}
			}
			must.Same(t, test.events, events)
			if got := fmt.Sprint(last); !strings.Contains(got, test.want) || (test.want == "") != (last == nil) {
				t.Errorf("error %q, want %q", got, test.want)
			}
		})
	}
	for _, err := range eventlog.Read(iotest.ErrReader(broken)) {
		must.Is(t, broken, err, "a reader that fails")
	}
}

func TestReadEndlessLine(t *testing.T) {
	endless := strings.NewReader(strings.Repeat("x", eventlog.MaxLine+2) + "\n")
	for _, err := range eventlog.Read(endless) {
		must.Is(t, eventlog.ErrTooLarge, err)
	}
}
