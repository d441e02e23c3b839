// Package exchange holds what the clients of the model's APIs share. It sends a request and reads its answer, as a stream
// of events or in one piece. It also interprets errors, requested waits and usage.
package exchange

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// DefaultIdleLimit is the default for how long an API may send nothing.
const DefaultIdleLimit = 5 * time.Minute

// Reader builds a response from the answer of an API.
type Reader interface {
	// Event processes the next event of a stream. It returns nil until it has the response.
	Event(data []byte) (*model.Response, error)
	// CompletedBy reports whether an event can be the last one of an answer.
	CompletedBy(event []byte) bool
	// End returns the result of a stream that ended without a response. announced means that the stream announced its
	// end. Otherwise the answer may be incomplete, even if the connection closed cleanly.
	End(announced bool) (*model.Response, error)
	// Whole returns the response for an answer in one piece.
	Whole(raw []byte) (*model.Response, error)
}

// Do sends the request raw and reads its answer. It returns an error if the API sends nothing for the time idle.
// onePiece means that the request asks for an answer in one piece, not for a stream.
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
		case onePiece || isJSON(response):
			answer, err = readWhole(response.Body, read)
		default:
			answer, err = readStream(&eventStream{reader: bufio.NewReader(response.Body)}, read, alive)
		}
		if failure, is := errors.AsType[*model.Failure](err); is && failure.Kind == model.Malformed {
			failure.Advice = askedAddress(response.Request)
		}
		return err
	})
	return WithPlausibleUsage(answer, err, raw)
}

// RefuseOtherHost is a http.Client.CheckRedirect that refuses redirects to another host, which must not get the key.
func RefuseOtherHost(to *http.Request, via []*http.Request) error {
	original := via[0].URL
	if original.Host != to.URL.Host || original.Scheme != to.URL.Scheme {
		return fmt.Errorf("the endpoint redirects to another host or scheme, %s://%s", to.URL.Scheme, to.URL.Host)
	}
	const maxRedirects = 5
	if len(via) > maxRedirects {
		return errors.New("the endpoint redirects too often")
	}
	return nil
}

// maxAnswerBytes is the maximum size of an answer, in bytes.
const maxAnswerBytes = 64 << 20

// tooLong returns the failure for an answer of more than maxAnswerBytes that has this data.
func tooLong(data []byte) *model.Failure { return Malformed("the answer is too long", nil, data) }

// readWhole reads an answer that is one JSON value.
func readWhole(body io.Reader, read Reader) (*model.Response, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxAnswerBytes+1))
	if err != nil {
		return nil, FailureOf(err)
	}
	if len(raw) > maxAnswerBytes {
		return nil, tooLong(raw)
	}
	return read.Whole(raw)
}

// isJSON reports whether an answer's body begins like a JSON value that is no number, as from an endpoint without
// streams. No line of a stream begins so, nor does a proxy's plain text, after which a retry may help. isJSON does not
// consume the body.
func isJSON(response *http.Response) bool {
	buffered := bufio.NewReader(response.Body)
	first, _ := buffered.Peek(len("false")) // no event of a stream is shorter; the next read reports an error
	response.Body = struct {
		io.Reader
		io.Closer
	}{buffered, response.Body}
	beginsWith := func(token string) bool { return strings.HasPrefix(string(first), token) }
	return slices.ContainsFunc([]string{"{", "[", `"`, "null", "true", "false"}, beginsWith)
}

// webPageFailure returns the failure if the answer is a web page, such as a proxy's login page, or nil.
func webPageFailure(response *http.Response) *model.Failure {
	if !strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/html") {
		return nil
	}
	return &model.Failure{Kind: model.Unreachable, Message: "a web page came from " + addressOf(response.Request) + " in the place of an answer"}
}

// askedAddress returns the advice that names the address of a request, or "" if it is unknown.
func askedAddress(request *http.Request) string {
	if request == nil {
		return ""
	}
	return "the request went to " + addressOf(request) + "; "
}

// addressOf returns the address of a request without user and query, which may be credentials.
func addressOf(request *http.Request) string {
	address := *request.URL
	address.User, address.RawQuery = nil, ""
	return address.String()
}

// WithIdleLimit runs work and returns its error. It cancels the context of work if work does not call alive for the
// time idle, and then returns a failure of the kind Silent. If ctx ends, it returns the error of ctx.
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

// Malformed returns the failure for data that does not have the form that the API describes. It keeps the beginning of
// the data. err is the cause and may be nil.
func Malformed(problem string, err error, data []byte) *model.Failure {
	const maxBytes = 2 << 10
	if err != nil {
		problem += ": " + plainjson.Explain(err).Error()
	}
	data = data[:min(len(data), maxBytes)]
	return &model.Failure{Kind: model.Malformed, Message: problem, Cause: err, Data: bytes.Clone(data)}
}

// Incomplete returns the failure for an answer that the API stopped early for this reason.
func Incomplete(reason string) *model.Failure {
	if reason == "content_filter" {
		return &model.Failure{Kind: model.Refused, Message: "the answer was stopped by the provider's content filter"}
	}
	return &model.Failure{Kind: model.Incomplete, Message: "the answer is incomplete: " + cmp.Or(reason, "no reason given")}
}
