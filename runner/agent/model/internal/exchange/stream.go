package exchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// eventStream reads server-sent events. Lines end in LF, CR or both.
type eventStream struct {
	reader        *bufio.Reader
	pastFirstLine bool
	afterCR       bool // the last line ended in CR, so a LF that follows belongs to that line end
	err           error
}

// maxLineBytes is the maximum length of a line, in bytes.
const maxLineBytes = 32 << 20

// next returns the next event's data. found is false at the end of the stream. complete is false if the stream ended
// before the blank line that ends the event.
func (s *eventStream) next() (data []byte, complete, found bool) {
	for s.err == nil {
		line, hasEnd := s.line()
		isBlank := len(line) == 0 && hasEnd
		if isBlank {
			if len(data) > 0 {
				return bytes.TrimSpace(data), true, true
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) == "data" {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		}
		if len(data) > maxAnswerBytes {
			s.err = bufio.ErrTooLong
		}
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 || errors.Is(s.err, bufio.ErrTooLong) {
		return nil, false, false
	}
	return data, false, true
}

// line reads the next line, without its end: CR, LF or CRLF. hasEnd is false if the stream ended before the line did.
func (s *eventStream) line() (line []byte, hasEnd bool) {
	for {
		b, err := s.reader.ReadByte()
		switch {
		case err != nil:
			s.err = err
			return s.withoutMark(line), false
		case b == '\n' && s.afterCR:
			s.afterCR = false
			continue
		case b == '\n' || b == '\r':
			s.afterCR = b == '\r'
			return s.withoutMark(line), true
		}
		s.afterCR = false
		if line = append(line, b); len(line) > maxLineBytes {
			s.err = bufio.ErrTooLong
			return nil, false
		}
	}
}

// withoutMark returns the line, without a byte order mark if it is the first one of the stream.
func (s *eventStream) withoutMark(line []byte) []byte {
	if s.pastFirstLine {
		return line
	}
	s.pastFirstLine = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// failure returns the error that interrupted the stream, or nil if it ended normally.
func (s *eventStream) failure() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// splitEvents splits the data of an event into its lines if each line is an event of its own, because some endpoints
// omit the blank lines between events. Otherwise it returns the data as one event.
func splitEvents(data []byte) [][]byte {
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) == 1 || json.Valid(data) {
		return [][]byte{data}
	}
	for _, line := range lines {
		if !json.Valid(line) && string(line) != endOfStream {
			return [][]byte{data}
		}
	}
	return lines
}

// endOfStream is the data by which some streams announce their end.
const endOfStream = "[DONE]"

// readStream reads an answer as a stream of events. It calls alive after each event. It ignores a last event without a
// blank line, unless that completes the answer.
func readStream(stream *eventStream, read Reader, alive func()) (*model.Response, error) {
	size := 0 // of all data
	for {
		data, complete, found := stream.next()
		if !found {
			break
		}
		alive()
		if size += len(data); size > maxAnswerBytes {
			return nil, tooLong(data)
		}
		events := splitEvents(data)
		last := events[len(events)-1]
		if !complete && string(last) != endOfStream && !read.CompletedBy(last) {
			break
		}
		for _, event := range events {
			if string(event) == endOfStream {
				return read.End(true)
			}
			answer, err := read.Event(event)
			if err != nil {
				return nil, err
			}
			if answer != nil { // this was the last event
				return answer, nil
			}
		}
		if !complete {
			return read.End(false)
		}
	}
	if err := stream.failure(); err != nil {
		return nil, FailureOf(err)
	}
	return read.End(false)
}
