package message_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

func TestReaderReadsWrittenReports(t *testing.T) {
	sent := []message.Report{
		{Items: []message.Item{{Kind: message.Text, Value: "a\nb<&>\u2028"}}, Calls: []message.Call{{ID: 1, Tool: "a", Input: "{}"}}},
		{Items: []message.Item{{Kind: message.Text, Value: strings.Repeat("x", 1<<20)}}},
		{End: &message.End{Failed: true, Error: "Error: no"}},
	}
	var line bytes.Buffer
	for _, report := range sent {
		must.Do(t, message.Write(&line, report))
	}
	reader := message.NewReader(&line)
	for _, want := range sent {
		var got message.Report
		must.Do(t, reader.Read(&got))
		must.Same(t, want, got)
	}
	must.Is(t, io.EOF, reader.Read(new(message.Report)), "behind the last")
}

func TestBoundsLines(t *testing.T) {
	for _, end := range []string{"", "\n"} {
		endless := io.MultiReader(strings.NewReader(`"`+strings.Repeat("x", message.Longest)), strings.NewReader(end))
		must.Is(t, message.ErrTooLong, message.NewReader(endless).Read(new(message.Report)))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"calls":[{"id":1,"tool":"a","input":"{}","text":true}],"items":[{"kind":"text","value":"x"}],"stored":{"a":"1"},"yield":true}` + "\n" + `{"end":{"failed":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := message.NewReader(bytes.NewReader(data))
		for range bytes.Count(data, []byte("\n")) + 1 {
			var report message.Report
			if reader.Read(&report) == nil && !report.Empty() {
				must.Is(t, nil, message.Write(io.Discard, report))
			}
		}
		must.Fail(t, "", reader.Read(new(message.Report)), "there are more lines than there")
	})
}
