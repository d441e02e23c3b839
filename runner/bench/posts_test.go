package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// BenchmarkPosts makes the body of a pull request and its comments of a run's
// transcript on disk.
func BenchmarkPosts(b *testing.B) {
	const events = 5000
	path := longTranscript(b, events)
	var took []time.Duration
	for b.Loop() {
		took = nil
		for range runs {
			took = append(took, compose(b, path))
		}
	}
	results.time(fmt.Sprintf("body and comments of a transcript of %d events", events), medianOf(took), 200*time.Millisecond)
}

func compose(b *testing.B, path string) time.Duration {
	b.Helper()
	began := time.Now()
	f := must.Get(os.Open(path))(b)
	defer f.Close()
	view := must.Get(transcript.FoldWithEntries(f))(b)
	posts := must.Get(body.Compose(view, body.Options{Comments: body.MaxComments}))(b)
	if len(posts.Comments) != body.MaxComments {
		b.Fatalf("there are %d comments", len(posts.Comments))
	}
	return time.Since(began)
}

// longTranscript is a run that reads files all the time: of four events a request,
// an answer with a message, a call and its output of 5 kB.
func longTranscript(b *testing.B, events int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "transcript.jsonl")
	log := must.Get(eventlog.Create(path, eventlog.Options{}))(b)
	add := func(kind transcript.Type, data any) {
		must.Get(log.Append(kind, data))(b)
	}
	add(transcript.TypeRunStarted, transcript.RunStarted{RunID: "20260301T090000Z-0a1b2c3d"})
	output := strings.Repeat("\tif err := run(ctx, `#1`, \"https://a.example\"); err != nil { // @octocat\n", 70)
	for turn := range (events - 1) / 4 {
		id := fmt.Sprint("call", turn)
		said := json.RawMessage(`{"type":"message","content":[{"type":"output_text","text":"I read the next file, which **may** call ` + "`run`" + `."}]}`)
		add(transcript.TypeModelRequest, transcript.ModelRequest{Turn: turn, Model: "m"})
		add(transcript.TypeModelResponse, transcript.ModelResponse{Turn: turn, Output: []json.RawMessage{said}})
		add(transcript.TypeToolStarted, transcript.ToolStarted{Turn: turn, CallID: id, Tool: "exec_command", Input: `{"cmd":"sed -n 1,70p internal/run.go"}`})
		add(transcript.TypeToolFinished, transcript.ToolFinished{Turn: turn, CallID: id, Tool: "exec_command", Output: output, Detail: map[string]any{"exit_code": 0}})
	}
	must.Do(b, log.Close())
	return path
}
