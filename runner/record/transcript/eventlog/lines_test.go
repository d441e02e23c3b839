package eventlog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestReadsLinesAsJSON(t *testing.T) {
	for text := range strings.Lines(transcripttest.Recorded(t, transcripttest.Greeting())) {
		sameAsJSON(t, strings.TrimSuffix(text, "\n"))
	}
}

// oddLines are lines that are not as Append writes them. Each is read as
// encoding/json reads it.
func oddLines() []string {
	end := `,"prev":"` + strings.Repeat("0", 64) + `"}`
	head := func(kind string) string {
		return `{"v":1,"seq":1,"time":"2026-01-02T03:04:05Z","agent":"main","type":"` + kind + `","data":`
	}
	return []string{
		head("warning") + `{"code":"a"},"data":{"code":"b"}` + end,
		head("warning") + `{"code":"a"},"type":"plan"` + end,
		head("warning") + `{"code":"a"},"v":2` + end,
		head("warning") + `{"code":"a"}` + end + `,"x":1}`,
		head("warning") + `{"code":"a"` + end,
		head("warning") + `` + end,
		head("warning") + `{"code":1}` + end,
		head("warning") + ` {"code":"a"} ` + end,
		head("warning") + `{"code":"a"}` + strings.Replace(end, "0", `\u0030`, 1),
		strings.Replace(head("warning"), `"data"`, `"x":{"y":1,"data"`, 1) + `{"code":"a"}` + `,"prev":""},"prev":"` + strings.Repeat("0", 53) + `"}`,
		strings.Replace(head("warning"), `"data"`, `"DATA":{},"data"`, 1) + `{"code":"a"}` + end,
		head("warning") + `{"code":"a"},"DATA":{}` + end,
		head("warning") + `{"code":"` + "\xff" + `"}` + end,
		head("run.resumed") + `{]` + end,
		head("run.resumed") + `{}` + end,
		head("model.retry") + `{"usage":{"input":1}},"data":{"usage":{"input":2}}` + end,
		head("no such") + `{]` + end,
		head("no such") + `{}` + end,
		head(`warn\u0069ng`) + `{"code":"a"}` + end,
		strings.Replace(head("warning"), `"seq":1`, `"seq":01`, 1) + `{}` + end,
		strings.Replace(head("warning"), `"seq":1`, `"seq":+1`, 1) + `{}` + end,
		strings.Replace(head("warning"), `"seq":1`, `"seq":1,"seq":2`, 1) + `{}` + end,
		strings.Replace(head("warning"), `T03`, ` 03`, 1) + `{}` + end,
		strings.Replace(head("warning"), `"v":1`, `"v":2`, 1) + `{}` + end,
	}
}

func TestReadsOddLinesAsJSON(t *testing.T) {
	for _, text := range oddLines() {
		sameAsJSON(t, text)
	}
}

func FuzzLines(f *testing.F) {
	for _, text := range oddLines() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text != "" && !strings.Contains(text, "\n") { // an empty line has an error text of its own
			sameAsJSON(t, text)
		}
	})
}

// sameAsJSON reads and folds a line as it is, and in a form that only encoding/json
// reads.
func sameAsJSON(t *testing.T, text string) {
	t.Helper()
	must.Same(t, events(" "+text+"\n"), events(text+"\n"), text)
	got, gotErr := transcript.FoldWithTexts(strings.NewReader(text + "\n"))
	want, wantErr := transcript.FoldWithTexts(strings.NewReader(" " + text + "\n"))
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%s\nerror %v, want %v", text, gotErr, wantErr)
	}
	if gotErr != nil {
		return
	}
	got.Head, want.Head = "", ""
	must.Same(t, asJSON(t, want), asJSON(t, got), text)
}

// events are those of a log, and the errors between them.
func events(log string) (all []any) {
	for e, err := range eventlog.Read(strings.NewReader(log)) {
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		all = append(all, e)
	}
	return all
}

func asJSON(t *testing.T, v *transcript.View) string {
	t.Helper()
	raw := must.Get(json.Marshal(v))(t)
	return string(raw)
}
