package claims

import (
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// Calls yields the inputs and outputs of the calls in a transcript. It ignores an incomplete last line.
func Calls(log io.Reader) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		for e, err := range eventlog.Read(log) {
			text := Text{}
			switch {
			case errors.As(err, new(*eventlog.TornError)):
				return
			case err != nil:
			case e.Type == transcript.TypeToolStarted:
				var d transcript.ToolStarted
				err = json.Unmarshal(e.Data, &d)
				text.Input = transcript.ReadableArguments(d.Input)
			case e.Type == transcript.TypeToolFinished:
				var d transcript.ToolFinished
				err = json.Unmarshal(e.Data, &d)
				text.Output = d.Output
				if d.RewrittenInput != "" {
					text.Input = transcript.ReadableArguments(d.RewrittenInput)
				}
			default:
				continue
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}
