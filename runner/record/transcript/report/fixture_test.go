package report

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

type happening = transcripttest.Happening

// fixture reads a run from testdata: ordinary, hostile, red (its change does not pass) or setup
// (its setup failed). The browser tests show the same files.
func fixture(t testing.TB, name string) (run []happening) {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/" + name + ".jsonl"))(t)
	for line := range strings.Lines(string(raw)) {
		var event transcript.Event
		must.Do(t, json.Unmarshal([]byte(line), &event))
		run = append(run, happening{Kind: event.Type, Data: event.Data})
	}
	return run
}

func quoted(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func asked(turn int, items ...json.RawMessage) happening {
	return happening{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: turn, Model: "gpt-5.1-codex", Input: items}}
}

func answered(turn int, items ...json.RawMessage) happening {
	return happening{Kind: transcript.TypeModelResponse, Data: transcript.ModelResponse{Turn: turn, Status: "completed", Output: items, Seconds: 3.4 + float64(turn)}}
}

func called(turn, number int, tool, input string) happening {
	return transcripttest.CalledBy(turn, number, 0, fmt.Sprint("call_", number), tool, input)
}

func ended(turn, number int, tool, output string, detail map[string]any) happening {
	return happening{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{
		Turn: turn, Number: number, CallID: fmt.Sprint("call_", number), Tool: tool, Output: output, Bytes: int64(len(output)), Detail: detail,
	}}
}

// evil tries what a text can try on a page.
const evil = `"'><script>alert(1)</script><img src=x onerror=alert(1)><svg/onload=alert(1)> <!-- --> </pre></details></li></ol> javascript:alert(1) {{.}} &lt;b&gt; &#60;b> ]]> ` + "\u202eabc\u2066 \u200b\ufeff\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\a\x00\b ` ** <style>*{display:none}</style> <base href=//evil.example> <meta http-equiv=refresh content=0>"
