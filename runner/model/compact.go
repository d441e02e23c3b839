package model

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// Compacter makes a conversation shorter by the provider's own means. The
// output of its answer stands for the whole history of the request.
type Compacter interface {
	Compact(context.Context, Request) (*Response, error)
}

// ErrNoCompaction says that the endpoint has no means of its own.
var ErrNoCompaction = errors.New("the endpoint does not compact conversations")

// compactBody is the JSON of POST /responses/compact.
type compactBody struct {
	Model          string            `json:"model"`
	Instructions   string            `json:"instructions,omitempty"`
	PromptCacheKey string            `json:"prompt_cache_key,omitempty"`
	Input          []json.RawMessage `json:"input"`
}

// Compact asks POST /responses/compact. An endpoint that lacks it answers as
// ErrNoCompaction.
func (o *OpenAI) Compact(ctx context.Context, r Request) (*Response, error) {
	raw, err := Encode(compactBody{r.Settings.Model, r.Settings.Instructions, r.Settings.CacheKey, r.History})
	if err != nil {
		return nil, err
	}
	var answer []byte
	err = watched(ctx, o.idle, func(ctx context.Context, _ func()) error {
		_, err := o.service.Compact(ctx, param.Override[responses.ResponseCompactParams](json.RawMessage(raw)), option.WithResponseBodyInto(&answer))
		if err != nil {
			return requestFailure(err)
		}
		return nil
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
	return weighed(&Response{ID: compacted.ID, Status: "completed", Output: compacted.Output, Usage: compacted.Usage.usage()}, nil, raw)
}
