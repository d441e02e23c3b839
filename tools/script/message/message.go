// Package message owns the JSON lines between hosts and programs that run JavaScript, their maximum
// length, and code mode's messages and limits. It knows neither side.
package message

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Longest is how many bytes a line may have.
const Longest = 32 << 20

// The limits of a script. The engine enforces them to inform the script; the host repeats it,
// because a script may break the engine.
const (
	MaxItems     = 10_000   // texts and images that a script shows in all
	MaxShown     = 16 << 20 // bytes of them
	MaxCalls     = 1_000    // calls under way at once
	MaxInput     = 4 << 20  // bytes of a call's input
	MaxInputs    = 16 << 20 // bytes of the inputs of all that are under way
	MaxTimers    = 10_000   // that are set at once
	MaxStored    = 1 << 20  // bytes of all values that are stored, with their keys
	LargestValue = 64 << 10 // bytes of one of them
)

// StoredBytes returns the bytes of stored values after a value is set, given the bytes before.
func StoredBytes(stored map[string]string, before int, key, value string) int {
	if old, exists := stored[key]; exists {
		return before - len(old) + len(value)
	}
	return before + len(key) + len(value)
}

// Order is a host's message to the engine: first the script, then results of calls.
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

// Settled is an ended call with a value or an error.
type Settled struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"` // where there is no value
}

// Report is the engine's report on a stretch of the script.
type Report struct {
	Ready  bool              `json:"ready,omitempty"` // for a script: the first report, and nothing else
	Calls  []Call            `json:"calls,omitempty"`
	Items  []Item            `json:"items,omitempty"`
	Stored map[string]string `json:"stored,omitempty"`
	Yield  bool              `json:"yield,omitempty"` // the model is to hear of the script now
	End    *End              `json:"end,omitempty"`   // nothing comes behind it
}

// Empty reports an empty Report.
func (r Report) Empty() bool {
	return !r.Ready && len(r.Calls) == 0 && len(r.Items) == 0 && len(r.Stored) == 0 && !r.Yield && r.End == nil
}

// Call is a script's call.
type Call struct {
	ID    int    `json:"id"`
	Tool  string `json:"tool"`
	Input string `json:"input"`
	Text  bool   `json:"text,omitempty"` // the input is the text that the script gave, else JSON
}

// Kind is the kind of an Item.
type Kind string

// The kinds of items.
const (
	Text  Kind = "text"
	Image Kind = "image" // by a data URL
	Audio Kind = "audio" // which nobody can be shown
)

// Item is an output of the script.
type Item struct {
	Kind  Kind   `json:"kind"`
	Value string `json:"value,omitempty"`
}

// End is how a script ended.
type End struct {
	Failed bool   `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Write writes a line.
func Write(to io.Writer, message any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	_, err := to.Write(line.Bytes())
	return err
}

// ErrTooLong reports a line above Longest bytes.
var ErrTooLong = errors.New("a line is too long")

// Reader reads lines.
type Reader struct{ lines *bufio.Reader }

// NewReader reads lines of from.
func NewReader(from io.Reader) *Reader { return &Reader{bufio.NewReaderSize(from, 64<<10)} }

// Read reads the next line into a message.
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
