package claims

import (
	"cmp"
	"io"
	"iter"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Calls yields the inputs and outputs of the calls in a transcript. An input and its output come as two texts. Calls
// ends at an incomplete last line without an error, and after the first error.
func Calls(log io.Reader) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		for e, err := range transcript.Read(log) {
			err = cmp.Or(err, e.Damage)
			text := Text{}
			switch d := e.Content.(type) {
			case transcript.ToolStarted:
				text.Input = transcript.ReadableArguments(d.Input)
			case transcript.ToolFinished:
				text.Output = d.Output
				if d.RewrittenInput != "" {
					text.Input = transcript.ReadableArguments(d.RewrittenInput)
				}
			}
			if err == nil && text == (Text{}) {
				continue
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}
