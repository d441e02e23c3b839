// Package message defines the JSON lines between hosts and programs that run JavaScript, their maximum
// length, and code mode's messages and limits. It knows neither side.
package message

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// Longest is the maximum length of a line in bytes.
const Longest = 32 << 20

// The limits of a script. The engine enforces them to inform the script. The host enforces them again,
// because a script may break the engine.
const (
	MaxItems     = 10_000   // texts and images that a script shows
	MaxShown     = 16 << 20 // bytes of all shown texts and images
	MaxCalls     = 1_000    // calls that run at once
	MaxInput     = 4 << 20  // bytes of a call's input
	MaxInputs    = 16 << 20 // bytes of the inputs of all running calls
	MaxTimers    = 10_000   // timers that are set at once
	MaxStored    = 1 << 20  // bytes of all stored values with their keys
	LargestValue = 64 << 10 // bytes of one stored value
)

// StoredBytes returns the total bytes of the stored keys and values after key is set to value. before is the
// present total.
func StoredBytes(stored map[string]string, before int, key, value string) int {
	if old, exists := stored[key]; exists {
		return before - len(old) + len(value)
	}
	return before + len(key) + len(value)
}

// Order is a host's message to the engine. The first one contains the script, each later one the results of calls.
type Order struct {
	Run     *Run      `json:"run,omitempty"`
	Settled []Settled `json:"settled,omitempty"`
}

// Run is a script with its environment.
type Run struct {
	Source string            `json:"source"`
	Tools  []Tool            `json:"tools"`
	Stored map[string]string `json:"stored,omitempty"` // values as JSON
}

// Tool is a callable tool.
type Tool struct {
	Name        string `json:"name"` // as scripts have it
	Description string `json:"description"`
}

// Settled is the result of an ended call: a value or an error.
type Settled struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"` // "" if there is a value
}

// Report is the engine's message about what the script did since the last report.
type Report struct {
	Ready  bool              `json:"ready,omitempty"` // the engine waits for the script; only alone in the first report
	Calls  []Call            `json:"calls,omitempty"`
	Items  []Item            `json:"items,omitempty"`
	Stored map[string]string `json:"stored,omitempty"`
	Yield  bool              `json:"yield,omitempty"` // the script asks to show its output to the model now
	End    *End              `json:"end,omitempty"`   // only in the last report
}

// Empty reports whether the report contains nothing.
func (r Report) Empty() bool {
	return !r.Ready && len(r.Calls) == 0 && len(r.Items) == 0 && len(r.Stored) == 0 && !r.Yield && r.End == nil
}

// Call is a script's call of a tool.
type Call struct {
	ID    int    `json:"id"`
	Tool  string `json:"tool"`
	Input string `json:"input"`
	Text  bool   `json:"text,omitempty"` // the input is plain text; otherwise it is JSON
}

// Kind is the kind of an Item.
type Kind string

// The kinds of items.
const (
	Text  Kind = "text"
	Image Kind = "image" // a data URL
	Audio Kind = "audio" // without a value, since models cannot hear it
)

// Item is an output of the script.
type Item struct {
	Kind  Kind   `json:"kind"`
	Value string `json:"value,omitempty"`
}

// End is the outcome of a script.
type End struct {
	Failed bool   `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Write writes a message as a line.
func Write(to io.Writer, message any) error {
	line, err := plainjson.Marshal(message)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

// ErrTooLong reports a line of more than Longest bytes.
var ErrTooLong = errors.New("a line is too long")

// Reader reads messages, one per line.
type Reader struct{ lines *bufio.Reader }

// NewReader returns a Reader of from.
func NewReader(from io.Reader) *Reader { return &Reader{bufio.NewReaderSize(from, 64<<10)} }

// Read decodes the next line into the message that into points to. At the end it returns io.EOF.
func (r *Reader) Read(into any) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	return nil
}

// line returns the next line. It is valid until the next read.
func (r *Reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line)+len(part) > Longest {
			return nil, ErrTooLong
		}
		switch {
		case err == nil && line == nil:
			return part, nil
		case err == nil:
			return append(line, part...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		line = append(line, part...)
	}
}
