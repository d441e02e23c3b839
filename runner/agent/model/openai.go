package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/auth"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1/"

// defaultIdle is how long an answer may be silent.
const defaultIdle = 5 * time.Minute

// Endpoint has the address of the API and the credentials.
type Endpoint struct {
	BaseURL string // DefaultBaseURL when empty
	APIKey  string // empty for an endpoint that asks for none
	// Workload is exchanged for keys in place of APIKey; nil for none. Chat does not use it.
	Workload *auth.WorkloadIdentity
	// Transport carries the requests, including the exchange; nil for the usual one.
	Transport http.RoundTripper
	Headers   map[string]string
	// UserAgent names the program to the API.
	UserAgent string
	// Idle ends an answer silent for this time: without an event of a stream, or without the whole
	// of another answer. 0 means 5 minutes.
	Idle time.Duration
}

// OpenAI is the Responses API. It sends each request once; Retrying sends it
// again.
type OpenAI struct {
	service  responses.ResponseService
	idle     time.Duration
	exchange bool // keys come by an exchange
}

// NewOpenAI makes a client. It does not connect.
func NewOpenAI(e Endpoint) (*OpenAI, error) {
	options, err := e.options()
	if err != nil {
		return nil, err
	}
	return &OpenAI{service: responses.NewResponseService(options...), idle: cmp.Or(e.Idle, defaultIdle), exchange: e.Workload != nil}, nil
}

// base returns the API's address with a final slash.
func (e Endpoint) base() (string, error) {
	base := cmp.Or(e.BaseURL, DefaultBaseURL)
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", errors.New("the model's address (model.base_url, else OPENAI_BASE_URL) is not an http or https URL")
	}
	if u.Scheme == "http" && !reach.Near(u.Hostname()) {
		return "", fmt.Errorf("the model's address (model.base_url, else OPENAI_BASE_URL) is http to the public host %s, where others could read the key and the conversation", u.Hostname())
	}
	return strings.TrimSuffix(base, "/") + "/", nil
}

func (e Endpoint) options() ([]option.RequestOption, error) {
	base, err := e.base()
	if err != nil {
		return nil, err
	}
	options := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: cmp.Or(e.Transport, http.DefaultTransport)}),
		option.WithMiddleware(refusals),
	}
	if e.APIKey != "" {
		options = append(options, option.WithAPIKey(e.APIKey))
	}
	if e.Workload != nil { // behind refusals, so that it sees a key that is refused, and drops it
		options = append(options, option.WithWorkloadIdentity(*e.Workload))
	}
	if e.UserAgent != "" {
		options = append(options, option.WithHeader("User-Agent", e.UserAgent))
	}
	for name, value := range e.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	return options, nil
}

// refusals rewrites refusals worded in a way openai-go can't read.
func refusals(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	answer, err := next(r)
	if err != nil || answer.StatusCode < http.StatusBadRequest {
		return answer, err
	}
	defer answer.Body.Close()
	return nil, refusal(answer)
}

// Respond sends r and reads the answer to its end. Its error is a *Failure, or
// ctx's.
func (o *OpenAI) Respond(ctx context.Context, r Request, observe Observer) (*Response, error) {
	raw, err := BodyFor(o, r)
	if err != nil {
		return nil, err
	}
	return exchange(ctx, o.idle, o.send, raw, r.Settings.Whole, &itemReader{observe: observe})
}

// send posts the bytes of a request and gives the answer unread. openai-go is given
// them as they are: parameters it would encode once more.
func (o *OpenAI) send(ctx context.Context, raw []byte) (sent *http.Response, err error) {
	err = o.letIn(func() error {
		_, err := o.service.New(ctx, responses.ResponseNewParams{}, option.WithRequestBody("application/json", raw), option.WithResponseBodyInto(&sent))
		return err
	})
	return sent, err
}

// letIn sends a request, and repeats it once if the key from an exchange is refused: the key may
// have expired early, and the next exchange gives another.
func (o *OpenAI) letIn(send func() error) error {
	err := send()
	if err == nil {
		return nil
	}
	if failure := requestFailure(err); !o.exchange || failure.Kind != Unauthorized {
		return failure
	}
	if err = send(); err != nil {
		return requestFailure(err)
	}
	return nil
}

// reader makes a response of an answer in the form of one of the APIs.
type reader interface {
	// event takes the next event of a stream. The last one may give the response.
	event(data []byte) (*Response, error)
	// completedBy says whether an event can be the last one of an answer.
	completedBy(event []byte) bool
	// end returns the result of a stream that ended without a response. said reports whether the
	// stream announced its end: a clean end of the connection says nothing about the answer.
	end(said bool) (*Response, error)
	// whole takes an answer in one piece.
	whole(raw []byte) (*Response, error)
}

// exchange sends a request and reads its answer. It ends after idle without data. whole means that
// the request asks for an answer in one piece.
func exchange(
	ctx context.Context, idle time.Duration,
	send func(context.Context, []byte) (*http.Response, error), raw []byte, whole bool, read reader,
) (*Response, error) {
	var answer *Response
	err := watched(ctx, idle, func(ctx context.Context, alive func()) error {
		sent, err := send(ctx, raw)
		if err != nil {
			return err
		}
		defer sent.Body.Close()
		switch page := pageIn(sent); {
		case page != nil:
			return page
		case whole || beginsObject(sent):
			answer, err = readWhole(sent.Body, read)
		default:
			answer, err = readStream(newEventStream(sent.Body), read, alive)
		}
		return err
	})
	return weighed(answer, err, raw)
}

// wholeLimit bounds an answer in one piece, in bytes.
const wholeLimit = 64 << 20

func readWhole(body io.Reader, read reader) (*Response, error) {
	raw, err := io.ReadAll(io.LimitReader(body, wholeLimit+1))
	if err != nil {
		return nil, requestFailure(err)
	}
	if len(raw) > wholeLimit {
		return nil, malformed("the answer is too long", nil, raw)
	}
	return read.whole(raw)
}

// beginsObject reports whether an answer is one JSON object, as from an endpoint without streams.
func beginsObject(sent *http.Response) bool {
	ahead := bufio.NewReader(sent.Body)
	first, _ := ahead.Peek(1) // what is wrong with it is told by who reads on
	sent.Body = struct {
		io.Reader
		io.Closer
	}{ahead, sent.Body}
	return string(first) == "{"
}

// pageIn returns the failure for a web page in place of an answer: mostly a proxy's login page.
func pageIn(sent *http.Response) *Failure {
	if !strings.HasPrefix(strings.ToLower(sent.Header.Get("Content-Type")), "text/html") {
		return nil
	}
	from := *sent.Request.URL
	from.User, from.RawQuery = nil, ""
	return &Failure{Kind: Unreachable, Message: "a web page came from " + from.String() + " in the place of an answer"}
}

// watched runs work until it ends, ctx does, or work has not called alive for
// as long as idle.
func watched(ctx context.Context, idle time.Duration, work func(ctx context.Context, alive func()) error) error {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(idle, func() { cancel(errSilent) })
	defer watch.Stop()
	err := work(reading, func() { watch.Reset(idle) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case context.Cause(reading) == errSilent:
		return &Failure{Kind: Silent, Message: fmt.Sprintf("nothing came for %s", idle), Err: errSilent}
	}
	return err
}

var errSilent = errors.New("the API fell silent")

// wireResponse has the fields of a response in use.
type wireResponse struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      *apiError         `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage       *wireUsage  `json:"usage"`
	ServiceTier serviceTier `json:"service_tier"`
}

func (r *wireResponse) failure(raw json.RawMessage) *Failure {
	switch {
	case r.Error != nil:
		return r.Error.failure(0)
	case r.Status == "incomplete":
		reason := ""
		if r.Incomplete != nil {
			reason = r.Incomplete.Reason
		}
		return incomplete(reason)
	case r.Status == "failed":
		return apiFailure(0, "", "the response failed without a reason")
	case r.Status == "cancelled": // its output ends anywhere
		return &Failure{Kind: StreamCut, Message: "the response was cancelled at the API before its end"}
	case r.Status != "completed" && r.Output == nil:
		return malformed("the answer is no response", nil, raw)
	}
	return nil
}

// malformed keeps the beginning of unreadable data.
func malformed(what string, err error, data []byte) *Failure {
	const most = 2 << 10
	if err != nil {
		what += ": " + err.Error()
	}
	if len(data) > most {
		data = data[:most]
	}
	return &Failure{Kind: Malformed, Message: what, Err: err, Data: bytes.Clone(data)}
}

// incomplete is a failure, not an answer: its last item may be cut anywhere.
func incomplete(reason string) *Failure {
	if reason == "content_filter" {
		return &Failure{Kind: Refused, Message: "the answer was stopped by the provider's content filter"}
	}
	return &Failure{Kind: Incomplete, Message: "the answer is incomplete: " + reason}
}

// compactBody is the JSON of POST /responses/compact.
type compactBody struct {
	Model          string            `json:"model"`
	Instructions   string            `json:"instructions,omitempty"`
	PromptCacheKey string            `json:"prompt_cache_key,omitempty"`
	Input          []json.RawMessage `json:"input"`
}

// Compact sends POST /responses/compact. For an endpoint without it, it returns ErrNoCompaction.
func (o *OpenAI) Compact(ctx context.Context, r Request) (*Response, error) {
	raw, err := rawitem.Encode(compactBody{r.Settings.Model, r.Settings.Instructions, r.Settings.CacheKey, rawitem.Findable(r.History)})
	if err != nil {
		return nil, err
	}
	var answer []byte
	err = watched(ctx, o.idle, func(ctx context.Context, _ func()) error {
		return o.letIn(func() error {
			_, err := o.service.Compact(ctx, param.Override[responses.ResponseCompactParams](json.RawMessage(raw)), option.WithResponseBodyInto(&answer))
			return err
		})
	})
	var failure *Failure
	if errors.As(err, &failure) && (failure.Status == 404 || failure.Status == 405 || failure.Status == 501) {
		return nil, ErrNoCompaction
	}
	if err != nil {
		return nil, err
	}
	var compacted wireResponse
	if err := json.Unmarshal(answer, &compacted); err != nil || len(compacted.Output) == 0 {
		return nil, malformed("the compacted conversation is not what the API describes", err, answer)
	}
	return weighed(&Response{ID: compacted.ID, Status: "completed", Output: compacted.Output, Usage: compacted.Usage.usage(compacted.ServiceTier)}, nil, raw)
}
