package mcp

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The pause before the event stream is opened again doubles from firstPause to maxPause.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// isEventStream reports whether a request opens the event stream for the server's own requests, which
// exists before revision 2026-07-28. A GET with Last-Event-ID requests the rest of an answer instead.
func isEventStream(request *http.Request) bool {
	return request.Method == http.MethodGet && request.Header.Get("Last-Event-ID") == ""
}

// serveEventStream answers a request for the event stream at once, with a stream that lasts for the whole
// session. It forwards the server's events to it, and opens the server's stream again when that breaks. The
// library alone would wait for the server, and end the session if the stream fails.
func (b *boundedTransport) serveEventStream(request *http.Request) *http.Response {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(request.Context())
	release := context.AfterFunc(b.ctx, cancel)
	go func() {
		defer release()
		defer cancel()
		remaining := int64(maxUnrequestedBytes)
		pause := firstPause
		for remaining > 0 && b.forwardStream(request.Clone(ctx), writer, &remaining) {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, maxPause)
		}
		<-ctx.Done() // until then, the library sees an open stream without events
		writer.CloseWithError(ctx.Err())
	}()
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader, Request: request,
	}
}

// forwardStream opens the server's event stream, and writes its requests and notifications to writer until the
// stream ends or remaining reaches 0. It subtracts the received bytes from remaining. openAgain is false after the
// session's end, or if the server has no such stream.
func (b *boundedTransport) forwardStream(request *http.Request, writer *io.PipeWriter, remaining *int64) (openAgain bool) {
	if request.Context().Err() != nil {
		return false
	}
	response, err := b.base.RoundTrip(request)
	if err != nil {
		return true
	}
	defer response.Body.Close()
	hasStream := response.StatusCode == http.StatusOK && strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if !hasStream {
		return false
	}
	events := rewrittenBody{from: bufio.NewReader(response.Body)}
	for {
		event, err := events.nextEvent()
		*remaining -= int64(len(event))
		if err != nil || *remaining <= 0 {
			return true
		}
		data, _ := splitEvent(event)
		message, err := jsonrpc.DecodeMessage(data)
		if err != nil {
			continue
		}
		fromServer, isRequest := message.(*jsonrpc.Request) // the type of notifications, too
		if !isRequest || fromServer.Method == "" {
			continue
		}
		if _, err := writer.Write(event); err != nil {
			return false
		}
	}
}
