package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1/"

// idleLimit ends a stream that has sent nothing for so long.
const idleLimit = 5 * time.Minute

// Endpoint says where the API is and how a request is let in.
type Endpoint struct {
	BaseURL string // DefaultBaseURL when empty
	APIKey  string // empty for an endpoint that asks for none
	Headers map[string]string
	Query   map[string]string
	// UserAgent names the program to the API.
	UserAgent string
}

// OpenAI is the Responses API, streamed. It sends each request once; Retrying
// sends it again.
type OpenAI struct {
	service responses.ResponseService
}

// NewOpenAI makes a client. It does not connect.
func NewOpenAI(e Endpoint) (*OpenAI, error) {
	base := e.BaseURL
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("model.base_url %q is not an http or https URL", base)
	}
	if !strings.HasSuffix(base, "/") {
		base += "/"
	}
	options := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: http.DefaultTransport}),
	}
	if e.APIKey != "" {
		options = append(options, option.WithAPIKey(e.APIKey))
	}
	if e.UserAgent != "" {
		options = append(options, option.WithHeader("User-Agent", e.UserAgent))
	}
	for name, value := range e.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	for name, value := range e.Query {
		options = append(options, option.WithQuery(name, value))
	}
	return &OpenAI{service: responses.NewResponseService(options...)}, nil
}

// Respond sends r and reads the answer to its end. Its error is a *Failure, or
// ctx's.
func (o *OpenAI) Respond(ctx context.Context, r Request, observe Observer) (*Response, error) {
	raw, err := r.Body()
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(idleLimit, func() { cancel(errSilent) })
	defer watch.Stop()

	stream := o.service.NewStreaming(reading, param.Override[responses.ResponseNewParams](json.RawMessage(raw)))
	defer stream.Close()
	answer, err := readStream(stream, observe, func() { watch.Reset(idleLimit) })
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case context.Cause(reading) == errSilent:
		return nil, &Failure{Kind: Silent, Err: errSilent}
	}
	return nil, err
}

var errSilent = fmt.Errorf("no event for %s", idleLimit)

// readStream takes the events of one answer. A stream that ends without a last
// event is a failure: openai-go reports a clean end of the connection as none.
func readStream(stream *ssestream.Stream[responses.ResponseStreamEventUnion], observe Observer, alive func()) (*Response, error) {
	var items []json.RawMessage
	for stream.Next() {
		alive()
		event := stream.Current()
		switch event.Type {
		case "response.output_text.delta":
			observe.text(event.Delta)
		case "response.output_item.done":
			item := json.RawMessage(event.Item.RawJSON())
			if !json.Valid(item) {
				return nil, errNoJSON()
			}
			items = append(items, item)
			observe.item(item)
		case "response.completed", "response.incomplete":
			return finish(event.Response, items, observe)
		case "response.failed":
			return nil, failedResponse(event.Response)
		case "error":
			return nil, apiFailure(0, event.Code, event.Message)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, requestFailure(err)
	}
	return nil, &Failure{Kind: StreamCut, Message: "the stream ended before response.completed"}
}

// finish joins the items that came one by one with the last event. Endpoints
// that send none by themselves give them all in the last event.
func finish(r responses.Response, items []json.RawMessage, observe Observer) (*Response, error) {
	if r.Status == responses.ResponseStatusIncomplete {
		return nil, incomplete(r.IncompleteDetails.Reason)
	}
	if len(items) == 0 {
		for _, output := range r.Output {
			item := json.RawMessage(output.RawJSON())
			if !json.Valid(item) {
				return nil, errNoJSON()
			}
			items = append(items, item)
			observe.item(item)
		}
	}
	return &Response{
		ID:     r.ID,
		Status: string(r.Status),
		Output: items,
		Usage: Usage{
			Input: r.Usage.InputTokens, Cached: r.Usage.InputTokensDetails.CachedTokens,
			Output: r.Usage.OutputTokens, Reasoning: r.Usage.OutputTokensDetails.ReasoningTokens,
		},
	}, nil
}

func errNoJSON() *Failure {
	return &Failure{Kind: Malformed, Message: "an output item is not JSON"}
}

// incomplete is a failure, not an answer: its last item may be cut anywhere.
func incomplete(reason string) *Failure {
	if reason == "content_filter" {
		return &Failure{Kind: Refused, Message: "the answer was stopped by the provider's content filter"}
	}
	return &Failure{Kind: Incomplete, Message: "the answer is incomplete: " + reason}
}

func failedResponse(r responses.Response) *Failure {
	return apiFailure(0, string(r.Error.Code), r.Error.Message)
}

// requestFailure tells what an error of openai-go is.
func requestFailure(err error) *Failure {
	if api := (*responses.Error)(nil); errors.As(err, &api) {
		f := apiFailure(api.StatusCode, api.Code, api.Message)
		if api.Response != nil {
			f.RetryAfter = retryAfter(api.Response.Header)
		}
		if f.Message == "" {
			f.Message = http.StatusText(api.StatusCode)
		}
		return f
	}
	if sent := (*ssestream.StreamError)(nil); errors.As(err, &sent) {
		return streamError(sent)
	}
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax), errors.As(err, &shape):
		return &Failure{Kind: Malformed, Err: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Failure{Kind: StreamCut, Err: err}
	}
	return &Failure{Kind: Unreachable, Err: err}
}

// streamError reads the error object of an event that carries one at its top.
func streamError(sent *ssestream.StreamError) *Failure {
	var event struct {
		Error struct {
			Code    string `json:"code"`
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(sent.Event.Data, &event); err != nil {
		return &Failure{Kind: Malformed, Err: err}
	}
	code := event.Error.Code
	if code == "" {
		code = event.Error.Type
	}
	return apiFailure(0, code, event.Error.Message)
}

// codeKinds maps the API's error codes; they say more than the HTTP status.
var codeKinds = map[string]Kind{
	"insufficient_quota":            Quota,
	"billing_hard_limit_reached":    Quota,
	"usage_not_included":            Quota,
	"rate_limit_exceeded":           RateLimited,
	"slow_down":                     RateLimited,
	"server_error":                  ServerError,
	"server_is_overloaded":          ServerError,
	"vector_store_timeout":          ServerError,
	"context_length_exceeded":       ContextLength,
	"invalid_prompt":                Refused,
	"cyber_policy":                  Refused,
	"bio_policy":                    Refused,
	"misalignment_policy_violation": Refused,
	"content_policy_violation":      Refused,
	"model_not_found":               NotFound,
	"invalid_api_key":               Unauthorized,
}

var statusKinds = map[int]Kind{
	http.StatusUnauthorized:    Unauthorized,
	http.StatusForbidden:       Forbidden,
	http.StatusNotFound:        NotFound,
	http.StatusRequestTimeout:  ServerError,
	http.StatusConflict:        ServerError,
	http.StatusTooManyRequests: RateLimited,
}

func apiFailure(status int, code, message string) *Failure {
	f := &Failure{Status: status, Code: code, Message: message, Kind: InvalidRequest}
	if kind, known := codeKinds[code]; known {
		f.Kind = kind
		return f
	}
	if kind, known := statusKinds[status]; known {
		f.Kind = kind
		return f
	}
	if status >= 500 || status == 0 {
		f.Kind = ServerError
	}
	return f
}

// retryAfter reads Retry-After in seconds (RFC 9110, section 10.2.3) and
// OpenAI's own header in milliseconds. A date is not used by the API.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	return 0
}
