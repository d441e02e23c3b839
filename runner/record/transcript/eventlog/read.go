package eventlog

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// TornError reports a log whose last line is incomplete, after a kill or on a full disk. All
// earlier lines are complete.
type TornError struct {
	line   int   // number of the incomplete line, from 1
	Offset int64 // where that line begins; truncate the file there to repair it
	Bytes  int   // length of the incomplete line
}

func (e *TornError) Error() string {
	return fmt.Sprintf("transcript line %d is torn: the run ended while it was written", e.line)
}

// invalidLineError returns the error for an invalid line.
func invalidLineError(number int, err error) error {
	return fmt.Errorf("transcript line %d is not an event: %w", number, err)
}

// Read yields the events of a log in order. It ends with the first error: a *TornError after the
// last complete event, an invalid line, or an error of r. It does not verify the chain: see
// VerifyChain.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for line, err := range Lines(r) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			e, err := line.Event()
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Line is one complete line of a log. Its text is valid until the next line is read.
type Line struct {
	number int
	text   []byte
}

// Digest returns the SHA-256 (hex) of the line, as the next event has it in Prev.
func (l Line) Digest() string { return lineDigest(l.text) }

// Event parses the line. Data of the result is a copy.
func (l Line) Event() (Event, error) {
	if e, ok := l.Split(); ok && json.Valid(e.Data) {
		return e, nil
	}
	var e Event
	if err := plainjson.Unmarshal(l.text, &e); err != nil {
		return Event{}, invalidLineError(l.number, err)
	}
	if e.V != Version {
		return Event{}, invalidLineError(l.number, fmt.Errorf("version %d, this agent-ci reads version %d", e.V, Version))
	}
	return e, nil
}

// Split is a faster Event for lines as Append writes them. ok is false for other lines. Data may be invalid JSON.
func (l Line) Split() (e Event, ok bool) {
	start, rest, _ := bytes.Cut(l.text, []byte(`,"data":`))
	rest, hasEnd := bytes.CutSuffix(rest, []byte(`"}`))
	prevAt := max(0, len(rest)-len(Genesis))
	data, hasPrev := bytes.CutSuffix(rest[:prevAt], []byte(`,"prev":"`))
	prev := rest[prevAt:]
	if _, err := hex.AppendDecode(nil, prev); err != nil || !hasEnd || !hasPrev || l.text[0] != '{' {
		return Event{}, false
	}
	err := json.Unmarshal(slices.Concat(start, []byte("}")), &e) // fails if the data is of an object in the line
	e.Data, e.Prev = bytes.Clone(bytes.TrimSpace(data)), string(prev)
	return e, err == nil && e.V == Version
}

// Lines yields the complete lines of a log without their newlines. It ends with the first error. A
// *TornError reports an incomplete last line.
func Lines(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		br := bufio.NewReaderSize(r, 32<<10)
		var offset int64
		for number := 1; ; number++ {
			text, err := readLine(br)
			switch {
			case errors.Is(err, io.EOF) && len(text) == 0:
				return
			case errors.Is(err, io.EOF):
				err = &TornError{line: number, Offset: offset, Bytes: len(text)}
			case errors.Is(err, ErrTooLarge):
				err = invalidLineError(number, err)
			case err != nil:
				err = fmt.Errorf("read transcript line %d: %w", number, err)
			}
			if err != nil {
				yield(Line{}, err)
				return
			}
			offset += int64(len(text))
			if !yield(Line{number: number, text: text[:len(text)-1]}, nil) {
				return
			}
		}
	}
}

// readLine returns a line with its newline. With an error, it returns the beginning of the line.
func readLine(br *bufio.Reader) ([]byte, error) {
	text, err := br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	long := append([]byte(nil), text...)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = br.ReadSlice('\n')
		if len(long)+len(text) > MaxLine+1 {
			return nil, ErrTooLarge
		}
		long = append(long, text...)
	}
	return long, err
}
