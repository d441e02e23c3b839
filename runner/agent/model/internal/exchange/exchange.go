// Package exchange holds what the clients of the model's APIs share. It sends a request and reads its answer, as a stream
// of events or in one piece. It also interprets errors, requested waits and usage.
package exchange

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// DefaultIdleLimit is the default for how long an API may send nothing.
const DefaultIdleLimit = 5 * time.Minute

// Reader builds a response from the answer of one of the APIs.
type Reader interface {
	// Event takes the next event of a stream. The last one may give the response.
	Event(data []byte) (*model.Response, error)
	// CompletedBy reports whether an event can be the last one of an answer.
	CompletedBy(event []byte) bool
	// End returns the result of a stream that ended without a response. said reports whether the stream announced its
	// end. Without that the answer may be incomplete, even if the connection closed cleanly.
	End(said bool) (*model.Response, error)
	// Whole returns the response for an answer in one piece.
	Whole(raw []byte) (*model.Response, error)
}

// Do sends a request and reads its answer. It fails if the API sends nothing for idle. onePiece means that the request
// asks for an answer in one piece.
func Do(
	ctx context.Context, idle time.Duration,
	send func(context.Context, []byte) (*http.Response, error), raw []byte, onePiece bool, read Reader,
) (*model.Response, error) {
	var answer *model.Response
	err := WithIdleLimit(ctx, idle, func(ctx context.Context, alive func()) error {
		response, err := send(ctx, raw)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		switch page := webPageFailure(response); {
		case page != nil:
			return page
		case onePiece || isJSONObject(response):
			answer, err = readWhole(response.Body, read)
		default:
			answer, err = readStream(&eventStream{reader: bufio.NewReader(response.Body)}, read, alive)
		}
		return err
	})
	return WithPlausibleUsage(answer, err, raw)
}

// RefuseOtherHost refuses redirects to another host, which must not get the key.
func RefuseOtherHost(to *http.Request, via []*http.Request) error {
	if from := via[0].URL; from.Host != to.URL.Host || from.Scheme != to.URL.Scheme {
		return fmt.Errorf("the endpoint redirects to another host or scheme, %s://%s", to.URL.Scheme, to.URL.Host)
	}
	if len(via) > 5 {
		return errors.New("the endpoint redirects too often")
	}
	return nil
}

// MaxAnswerBytes is the maximum size of an answer, in bytes.
const MaxAnswerBytes = 64 << 20

func readWhole(body io.Reader, read Reader) (*model.Response, error) {
	raw, err := io.ReadAll(io.LimitReader(body, MaxAnswerBytes+1))
	if err != nil {
		return nil, FailureOf(err)
	}
	if len(raw) > MaxAnswerBytes {
		return nil, Malformed("the answer is too long", nil, raw)
	}
	return read.Whole(raw)
}

// isJSONObject reports whether an answer begins with a JSON object, as from an endpoint without streams. It does not
// consume the body.
func isJSONObject(response *http.Response) bool {
	buffered := bufio.NewReader(response.Body)
	first, _ := buffered.Peek(1) // the next read reports an error
	response.Body = struct {
		io.Reader
		io.Closer
	}{buffered, response.Body}
	return string(first) == "{"
}

// webPageFailure returns the failure if the answer is a web page, such as a proxy's login page, or nil.
func webPageFailure(response *http.Response) *model.Failure {
	if !strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/html") {
		return nil
	}
	from := *response.Request.URL
	from.User, from.RawQuery = nil, ""
	return &model.Failure{Kind: model.Unreachable, Message: "a web page came from " + from.String() + " in the place of an answer"}
}

// WithIdleLimit runs work. It cancels work's context if ctx ends, or if work does not call alive for the time idle, and
// returns the matching error.
func WithIdleLimit(ctx context.Context, idle time.Duration, work func(ctx context.Context, alive func()) error) error {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(idle, func() { cancel(errSilent) })
	defer timer.Stop()
	err := work(reading, func() { timer.Reset(idle) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case context.Cause(reading) == errSilent:
		return &model.Failure{Kind: model.Silent, Message: fmt.Sprintf("nothing came for %s", idle), Cause: errSilent}
	}
	return err
}

var errSilent = errors.New("the API fell silent")

// Malformed returns the failure for data that is not what the API describes. It keeps the beginning of the data.
func Malformed(problem string, err error, data []byte) *model.Failure {
	const most = 2 << 10
	if err != nil {
		problem += ": " + err.Error()
	}
	if len(data) > most {
		data = data[:most]
	}
	return &model.Failure{Kind: model.Malformed, Message: problem, Cause: err, Data: bytes.Clone(data)}
}

// Incomplete returns the failure for an answer that the API stopped early. It is no response, because its last item may be
// cut anywhere.
func Incomplete(reason string) *model.Failure {
	if reason == "content_filter" {
		return &model.Failure{Kind: model.Refused, Message: "the answer was stopped by the provider's content filter"}
	}
	return &model.Failure{Kind: model.Incomplete, Message: "the answer is incomplete: " + reason}
}
