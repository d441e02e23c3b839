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

// serveEventStream answers a request for the event stream at once, with a stream for the whole session.
// The library would wait for the server, and end the session if the stream fails. With
// serveEventStream, a server that refuses, delays or breaks the stream only loses its own requests.
func (b *boundedTransport) serveEventStream(request *http.Request) *http.Response {
	from, to := io.Pipe()
	ctx, cancel := context.WithCancel(request.Context())
	release := context.AfterFunc(b.ctx, cancel)
	go func() {
		defer release()
		defer cancel()
		remaining := int64(maxUnrequestedBytes)
		for pause := firstPause; remaining > 0 && b.forwardStream(request.Clone(ctx), to, &remaining); pause = min(2*pause, maxPause) {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		<-ctx.Done()
		to.CloseWithError(ctx.Err())
	}()
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: from, Request: request,
	}
}

// forwardStream opens the server's stream, and writes its requests and notifications to to until it ends. It
// subtracts the received bytes from remaining. It reports whether to open the stream again.
func (b *boundedTransport) forwardStream(request *http.Request, to *io.PipeWriter, remaining *int64) (again bool) {
	if request.Context().Err() != nil {
		return false
	}
	response, err := b.base.RoundTrip(request)
	if err != nil {
		return true
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return false // the server has no such stream
	}
	events := rewrittenBody{from: bufio.NewReader(response.Body)}
	for {
		event, err := events.event()
		if *remaining -= int64(len(event)); err != nil || *remaining <= 0 {
			return true
		}
		data, _ := splitEvent(event)
		message, err := jsonrpc.DecodeMessage(data)
		if request, ok := message.(*jsonrpc.Request); err != nil || !ok || request.Method == "" {
			continue
		}
		if _, err := to.Write(event); err != nil {
			return false
		}
	}
}
