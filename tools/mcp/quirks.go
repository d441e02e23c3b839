package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// emptyCursor replaces an empty cursor in messages for the library, which would treat an empty cursor as missing. In
// the protocol only a missing cursor ends a list.
const emptyCursor = "agent-ci:empty-cursor"

// fromServer returns a server's answer as the library needs it: an id that is a number in a string becomes a
// number, and an empty next cursor becomes emptyCursor. Other messages are returned unchanged.
func fromServer(raw []byte) []byte {
	var message map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil || message["method"] != nil {
		return raw
	}
	id, idChanged := numberInText(message["id"])
	if idChanged {
		message["id"] = id
	}
	result, resultChanged := withCursor(message["result"], "nextCursor", "", emptyCursor)
	if resultChanged {
		message["result"] = result
	}
	if !idChanged && !resultChanged {
		return raw
	}
	return encodeOr(message, raw)
}

// toServer returns a message for the server with emptyCursor replaced by an empty cursor.
func toServer(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(emptyCursor)) {
		return raw
	}
	var message map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil {
		return raw
	}
	params, paramsChanged := withCursor(message["params"], "cursor", emptyCursor, "")
	if !paramsChanged {
		return raw
	}
	message["params"] = params
	return encodeOr(message, raw)
}

// numberInText returns the integer that a JSON string contains. isNumber reports whether id is such a string. The
// ids of our requests are integers.
func numberInText(id json.RawMessage) (number json.RawMessage, isNumber bool) {
	var text string
	isString := len(id) > 0 && id[0] == '"' && json.Unmarshal(id, &text) == nil
	if !isString {
		return nil, false
	}
	var value float64
	if json.Unmarshal([]byte(text), &value) != nil || value != float64(int64(value)) {
		return nil, false
	}
	number, err := json.Marshal(int64(value))
	return number, err == nil
}

// withCursor returns a JSON object with the cursor at key replaced, if the cursor is old. Otherwise changed is false.
func withCursor(object json.RawMessage, key, old, replacement string) (newObject json.RawMessage, changed bool) {
	if !bytes.Contains(object, []byte(key)) {
		return nil, false
	}
	var members map[string]json.RawMessage
	var cursor *string
	hasCursor := json.Unmarshal(object, &members) == nil && json.Unmarshal(members[key], &cursor) == nil && cursor != nil
	if !hasCursor || *cursor != old {
		return nil, false
	}
	members[key], _ = json.Marshal(replacement)
	return encodeOr(members, object), true
}

// encodeOr returns the members as a JSON object, or fallback if that fails.
func encodeOr(members map[string]json.RawMessage, fallback []byte) []byte {
	if text, err := plainjson.Marshal(members); err == nil {
		return text
	}
	return fallback
}

// maxList is the maximum length of requests that are searched for emptyCursor, in bytes. Requests for a page of a
// list are short.
const maxList = 64 << 10

// rewriteRequest applies toServer to a request's body, unless the body is longer than maxList.
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

// rewriteResponse applies fromServer to each message in an answer's body.
func rewriteResponse(response *http.Response) {
	kind := response.Header.Get("Content-Type")
	body := &rewrittenBody{body: response.Body, from: bufio.NewReader(response.Body)}
	switch {
	case strings.HasPrefix(kind, "application/json"):
		body.next = body.wholeMessage
	case strings.HasPrefix(kind, "text/event-stream"):
		body.next = body.nextEvent
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

// Close closes the answer's body.
func (r *rewrittenBody) Close() error { return r.body.Close() }

// wholeMessage returns the whole body as one rewritten message, with io.EOF.
func (r *rewrittenBody) wholeMessage() ([]byte, error) {
	raw, err := io.ReadAll(r.from)
	if err != nil {
		return raw, err
	}
	return fromServer(raw), io.EOF
}

// nextEvent returns the next event of a stream, rewritten, and the error that follows it. It returns an event above
// maxLineBytes in parts.
func (r *rewrittenBody) nextEvent() ([]byte, error) {
	var lines, currentLine []byte
	for len(lines) <= maxLineBytes {
		line, err := r.from.ReadSlice('\n')
		lines = append(lines, line...)
		currentLine = append(currentLine, line...)
		if err == bufio.ErrBufferFull { // the line continues
			continue
		}
		if err != nil {
			return rewrittenEvent(lines), err
		}
		if len(bytes.TrimRight(currentLine, "\r\n")) == 0 { // an empty line ends the event
			break
		}
		currentLine = currentLine[:0]
	}
	return rewrittenEvent(lines), nil
}

// rewrittenEvent returns an event with its message rewritten. A changed message takes one line.
func rewrittenEvent(event []byte) []byte {
	data, others := splitEvent(event)
	message := fromServer(data)
	if bytes.Equal(data, message) {
		return event
	}
	return append([]byte("data: "+string(message)+"\n"), others...)
}

// splitEvent returns the values of an event's data lines, joined by newlines, and the event's other lines.
func splitEvent(event []byte) (data, others []byte) {
	var lines [][]byte
	for line := range bytes.Lines(event) {
		if value, isData := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); isData {
			lines = append(lines, bytes.TrimSpace(value))
			continue
		}
		others = append(others, line...)
	}
	return bytes.Join(lines, []byte("\n")), others
}
