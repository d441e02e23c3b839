package eventlog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func logLines(t testing.TB) []string {
	t.Helper()
	return strings.SplitAfter(strings.TrimSuffix(transcripttest.Recorded(t, transcripttest.Greeting()), "\n"), "\n")
}

// alterations are ways to change one line so that it is still an event.
var alterations = map[string]func(string) string{
	"type":       func(l string) string { return strings.Replace(l, `"type":"`, `"type":"x`, 1) },
	"data":       func(l string) string { return strings.Replace(l, `"data":{`, `"data":{"x":1,`, 1) },
	"time":       func(l string) string { return strings.Replace(l, "2026", "2025", 1) },
	"whitespace": func(l string) string { return strings.Replace(l, "{", "{ ", 1) },
	"seq":        func(l string) string { return strings.Replace(l, `"seq":`, `"seq":9`, 1) },
	"no event":   func(l string) string { return "x" + l },
	"digest": func(l string) string {
		return l[:len(l)-len(strings.Repeat("0", 64)+"\"}\n")] + strings.Repeat("e", 64) + "\"}\n"
	},
	"version": func(l string) string { return strings.Replace(l, `"v":1`, `"v":2`, 1) },
}

func TestVerifyChainNamesAlteredLine(t *testing.T) {
	lines := logLines(t)
	for name, alter := range alterations {
		for i := range len(lines) - 1 { // of the last line only the head can tell
			t.Run(fmt.Sprintf("%s of line %d", name, i+1), func(t *testing.T) {
				altered := slices.Clone(lines)
				altered[i] = alter(altered[i])
				if altered[i] == lines[i] {
					t.Fatal("nothing was altered")
				}
				wantBroken(t, altered, i+1)
			})
		}
	}
	wantBroken(t, []string{strings.Replace(lines[0], strings.Repeat("0", 64), strings.Repeat("1", 64), 1)}, 1)
}

func TestVerifyChainNamesGap(t *testing.T) {
	lines := logLines(t)
	for i := range len(lines) - 1 {
		t.Run(fmt.Sprint("at line ", i+1), func(t *testing.T) {
			wantBroken(t, slices.Delete(slices.Clone(lines), i, i+1), i+1)
			wantBroken(t, slices.Insert(slices.Clone(lines), i+1, lines[i]), i+2)
			swapped := slices.Clone(lines)
			swapped[i], swapped[i+1] = strings.TrimSuffix(swapped[i+1], "\n")+"\n", strings.TrimSuffix(swapped[i], "\n")+"\n"
			wantBroken(t, swapped, i+1)
		})
	}
}

func wantBroken(t *testing.T, lines []string, line int) {
	t.Helper()
	head, err := eventlog.VerifyChain(strings.NewReader(strings.TrimSuffix(strings.Join(lines, ""), "\n") + "\n"))
	var broken *eventlog.ChainError
	if !errors.As(err, &broken) {
		t.Fatalf("head %s, error %v; want a *ChainError", head, err)
	}
	must.Same(t, line, broken.Line, "blamed line", err)
	must.Same(t, "", head, "blamed line", err)
}

func TestVerifyChainEnd(t *testing.T) {
	lines := logLines(t)
	whole := strings.Join(lines, "") + "\n"
	head := must.Get(eventlog.VerifyChain(strings.NewReader(whole)))(t)
	last := len(lines) - 1
	shorter, err := eventlog.VerifyChain(strings.NewReader(strings.Join(lines[:last], "")))
	if err != nil || shorter == head {
		t.Errorf("a log that lost its last line: %s, %v; only the head can tell", shorter, err)
	}
	altered, err := eventlog.VerifyChain(strings.NewReader(strings.Join(lines[:last], "") + alterations["data"](lines[last]) + "\n"))
	if err != nil || altered == head {
		t.Errorf("an altered last line: %s, %v; only the head can tell", altered, err)
	}
	var torn *eventlog.TornError
	if got, err := eventlog.VerifyChain(strings.NewReader(whole + `{"v":1`)); !errors.As(err, &torn) || got != head {
		t.Errorf("a torn last line: %s, %v; want the head of the whole lines", got, err)
	}
	must.Same(t, int64(len(whole)), torn.Offset, "the torn line begins at", len(whole))
	must.Same(t, 6, torn.Bytes, "the torn line begins at", len(whole))
}
