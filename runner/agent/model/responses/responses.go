// Package responses is a client for the Responses API, built on openai-go. It sends requests unchanged, and
// assembles the items of an answer from the different events that endpoints send.
package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// Client is a client for the Responses API. It sends each request once; model.Retrying repeats requests.
type Client struct {
	service         responses.ResponseService
	idleLimit       time.Duration
	usesKeyExchange bool
}

// New returns a client for the endpoint e. It does not connect.
func New(e model.Endpoint) (*Client, error) {
	base, err := e.Base()
	if err != nil {
		return nil, err
	}
	options := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: cmp.Or(e.Transport, http.DefaultTransport), CheckRedirect: exchange.RefuseOtherHost}),
		option.WithMiddleware(rewriteRefusals),
	}
	if e.APIKey != "" {
		options = append(options, option.WithAPIKey(e.APIKey))
	}
	if e.Workload != nil { // after rewriteRefusals, so that it sees that a key is refused, and drops the key
		options = append(options, option.WithWorkloadIdentity(*e.Workload))
	}
	if e.UserAgent != "" {
		options = append(options, option.WithHeader("User-Agent", e.UserAgent))
	}
	for name, values := range base.Query() { // openai-go would drop them
		for _, value := range values {
			options = append(options, option.WithQueryAdd(name, value))
		}
	}
	for name, value := range e.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	return &Client{service: responses.NewResponseService(options...), idleLimit: cmp.Or(e.IdleLimit, exchange.DefaultIdleLimit), usesKeyExchange: e.Workload != nil}, nil
}

// rewriteRefusals turns an answer with an error status into a *model.Failure, because openai-go cannot parse the
// errors of all endpoints.
func rewriteRefusals(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	answer, err := next(r)
	if err != nil {
		return answer, err
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, exchange.Refusal(answer)
}

// Respond sends r and reads the answer to its end. The error is a *model.Failure, or that of ctx.
func (c *Client) Respond(ctx context.Context, r model.Request, observe model.Observer) (*model.Response, error) {
	raw, err := model.BodyFor(c, r)
	if err != nil {
		return nil, err
	}
	return exchange.Do(ctx, c.idleLimit, c.send, raw, r.Settings.NoStream, &itemReader{observer: observe})
}

// send posts a request's body and returns the response, whose body is unread.
func (c *Client) send(ctx context.Context, raw []byte) (response *http.Response, err error) {
	err = c.sendWithFreshKey(func() error {
		_, err := c.service.New(ctx, responses.ResponseNewParams{}, option.WithRequestBody("application/json", raw), option.WithResponseBodyInto(&response))
		return err
	})
	return response, err
}

// sendWithFreshKey calls send, and repeats it once if the API refuses a key from a token exchange. The key may have
// expired, and the second call exchanges a token for another one.
func (c *Client) sendWithFreshKey(send func() error) error {
	err := send()
	if err != nil && c.usesKeyExchange && exchange.FailureOf(err).Kind == model.Unauthorized {
		err = send()
	}
	if err != nil {
		return exchange.FailureOf(err)
	}
	return nil
}

// wireResponse has the fields of the API's response object that the client reads.
type wireResponse struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      *exchange.Error   `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage       *exchange.Usage `json:"usage"`
	ServiceTier exchange.Tier   `json:"service_tier"`
}

// failure returns the failure if a response is no complete answer, or nil. raw is the response's JSON.
func (r *wireResponse) failure(raw json.RawMessage) *model.Failure {
	switch {
	case r.Error != nil:
		return r.Error.Failure(0)
	case r.Status == "incomplete":
		reason := ""
		if r.Incomplete != nil {
			reason = r.Incomplete.Reason
		}
		return exchange.Incomplete(reason)
	case r.Status == "failed":
		return exchange.Failure(0, "", "the response failed without a reason")
	case r.Status == "cancelled": // its output ends anywhere
		return &model.Failure{Kind: model.StreamCut, Message: "the response was cancelled at the API before its end"}
	case r.Status != "completed" && r.Output == nil:
		return exchange.Malformed("the answer is no response", nil, raw)
	}
	return nil
}

// compactBody is the JSON of POST /responses/compact.
type compactBody struct {
	Model          string            `json:"model"`
	Instructions   string            `json:"instructions,omitempty"`
	PromptCacheKey string            `json:"prompt_cache_key,omitempty"`
	Input          []json.RawMessage `json:"input"`
}

// Compact lets the endpoint shorten the conversation, by POST /responses/compact. It returns ErrNoCompaction for an
// endpoint without that.
func (c *Client) Compact(ctx context.Context, r model.Request) (*model.Response, error) {
	raw, err := rawitem.Encode(compactBody{r.Settings.Model, r.Settings.Instructions, r.Settings.CacheKey, rawitem.WithoutBareReasoning(r.History)})
	if err != nil {
		return nil, err
	}
	var answer []byte
	err = exchange.WithIdleLimit(ctx, c.idleLimit, func(ctx context.Context, _ func()) error {
		return c.sendWithFreshKey(func() error {
			_, err := c.service.Compact(ctx, param.Override[responses.ResponseCompactParams](json.RawMessage(raw)), option.WithResponseBodyInto(&answer))
			return err
		})
	})
	notSupported := []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}
	if failure, isFailure := errors.AsType[*model.Failure](err); isFailure && slices.Contains(notSupported, failure.Status) {
		return nil, model.ErrNoCompaction
	}
	if err != nil {
		return nil, err
	}
	var compacted wireResponse
	if err := json.Unmarshal(answer, &compacted); err != nil || len(compacted.Output) == 0 {
		return nil, exchange.Malformed("the compacted conversation is not what the API describes", err, answer)
	}
	return exchange.WithPlausibleUsage(&model.Response{ID: compacted.ID, Status: "completed", Output: compacted.Output, Usage: compacted.Usage.ToModel(compacted.ServiceTier)}, nil, raw)
}
