package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// emptyCursor replaces an empty cursor in messages for the library. In the protocol only a missing
// cursor ends a list, but the library treats an empty one as missing.
const emptyCursor = "agent-ci:empty-cursor"

// fromServer converts a server's answer for the library. It converts an id written as text to a number,
// and an empty cursor to emptyCursor.
func fromServer(raw []byte) []byte {
	var message map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil || message["method"] != nil {
		return raw
	}
	id, isText := numberInText(message["id"])
	if isText {
		message["id"] = id
	}
	result, isEmpty := withCursor(message["result"], "nextCursor", "", emptyCursor)
	if isEmpty {
		message["result"] = result
	}
	if !isText && !isEmpty {
		return raw
	}
	return encodeOr(message, raw)
}

// toServer converts emptyCursor back for the server.
func toServer(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(emptyCursor)) {
		return raw
	}
	var message map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil {
		return raw
	}
	params, changed := withCursor(message["params"], "cursor", emptyCursor, "")
	if !changed {
		return raw
	}
	message["params"] = params
	return encodeOr(message, raw)
}

// numberInText returns the integer that a JSON string contains. The ids of our requests are integers.
func numberInText(id json.RawMessage) (json.RawMessage, bool) {
	var text string
	if len(id) == 0 || id[0] != '"' || json.Unmarshal(id, &text) != nil {
		return nil, false
	}
	var number float64
	if json.Unmarshal([]byte(text), &number) != nil || number != float64(int64(number)) {
		return nil, false
	}
	raw, err := json.Marshal(int64(number))
	return raw, err == nil
}

// withCursor returns an object with the cursor at key replaced. It reports false if the cursor is not
// old.
func withCursor(object json.RawMessage, key, old, replacement string) (json.RawMessage, bool) {
	if !bytes.Contains(object, []byte(key)) {
		return nil, false
	}
	var members map[string]json.RawMessage
	var cursor *string
	if json.Unmarshal(object, &members) != nil || json.Unmarshal(members[key], &cursor) != nil || cursor == nil || *cursor != old {
		return nil, false
	}
	members[key], _ = json.Marshal(replacement)
	return encodeOr(members, object), true
}

// encodeOr returns the members as JSON, or the original text.
func encodeOr(members map[string]json.RawMessage, raw []byte) []byte {
	if text, err := tools.JSON(members); err == nil {
		return text
	}
	return raw
}

// maxList is the longest request to search for emptyCursor, in bytes. Requests for a page of a list are
// short.
const maxList = 64 << 10

// rewriteRequest applies toServer to a request's body.
func rewriteRequest(request *http.Request) error {
	if request.Body == nil || request.ContentLength <= 0 || request.ContentLength > maxList {
		return nil
	}
	body, err := io.ReadAll(request.Body)
	request.Body.Close()
	if err != nil {
		return err
	}
	body = toServer(body)
	request.ContentLength = int64(len(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Body, err = request.GetBody()
	return err
}

// rewriteResponse applies fromServer to an answer's body.
func rewriteResponse(response *http.Response) {
	kind := response.Header.Get("Content-Type")
	body := &rewrittenBody{body: response.Body, from: bufio.NewReader(response.Body)}
	switch {
	case strings.HasPrefix(kind, "application/json"):
		body.next = body.message
	case strings.HasPrefix(kind, "text/event-stream"):
		body.next = body.event
	default:
		return
	}
	response.Body, response.ContentLength = body, -1
}

// rewrittenBody is the body of an answer with each message rewritten by fromServer.
type rewrittenBody struct {
	body io.ReadCloser
	from *bufio.Reader
	next func() ([]byte, error) // returns the next part, and the error that follows it
	part []byte
	err  error
}

// Read returns the rewritten parts in order, and then the error that ended the body.
func (r *rewrittenBody) Read(into []byte) (int, error) {
	for len(r.part) == 0 && r.err == nil {
		r.part, r.err = r.next()
	}
	n := copy(into, r.part)
	r.part = r.part[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

func (r *rewrittenBody) Close() error { return r.body.Close() }

// message returns the whole body as one rewritten message.
func (r *rewrittenBody) message() ([]byte, error) {
	raw, err := io.ReadAll(r.from)
	if err != nil {
		return raw, err
	}
	return fromServer(raw), io.EOF
}

// event returns the next event of a stream, rewritten. It returns an event above maxLineBytes in parts.
func (r *rewrittenBody) event() ([]byte, error) {
	var lines, currentLine []byte
	for len(lines) <= maxLineBytes {
		line, err := r.from.ReadSlice('\n')
		lines = append(lines, line...)
		complete := err != bufio.ErrBufferFull
		if err != nil && complete {
			return rewrittenEvent(lines), err
		}
		currentLine = append(currentLine, line...)
		if !complete {
			continue
		}
		if len(bytes.TrimRight(currentLine, "\r\n")) == 0 {
			break
		}
		currentLine = currentLine[:0]
	}
	return rewrittenEvent(lines), nil
}

// rewrittenEvent returns an event with its message rewritten, in one line.
func rewrittenEvent(event []byte) []byte {
	data, others := splitEvent(event)
	message := fromServer(data)
	if bytes.Equal(data, message) {
		return event
	}
	return append([]byte("data: "+string(message)+"\n"), others...)
}

// splitEvent returns the joined data lines of an event, and its other lines.
func splitEvent(event []byte) (data, others []byte) {
	var lines [][]byte
	for line := range bytes.Lines(event) {
		if value, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			lines = append(lines, bytes.TrimSpace(value))
			continue
		}
		others = append(others, line...)
	}
	return bytes.Join(lines, []byte("\n")), others
}
