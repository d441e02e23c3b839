package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

const (
	// maxTokens is more than a model reads or writes in one answer.
	maxTokens = 1 << 30
	// bytesPerToken is the estimate if the API gives no possible usage. longestToken is more bytes
	// of text than any tokenizer's average token has.
	bytesPerToken = 4
	longestToken  = 1024
)

// tokenCount is a number of tokens from an API. Another JSON value counts as absent, so a wrong
// usage loses no answer.
type tokenCount int64

const unknownCount tokenCount = -1

func (c *tokenCount) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case string(raw) == "null":
		*c = 0
	case err != nil || n < 0 || n > maxTokens || n != math.Trunc(n):
		*c = unknownCount
	default:
		*c = tokenCount(n)
	}
	return nil
}

// Usage is the usage of an answer under the names of either API.
type Usage struct {
	Input         tokenCount  `json:"input_tokens"`
	Output        tokenCount  `json:"output_tokens"`
	InputDetails  wireDetails `json:"input_tokens_details"`
	OutputDetails wireDetails `json:"output_tokens_details"`

	Prompt            tokenCount  `json:"prompt_tokens"`
	Completion        tokenCount  `json:"completion_tokens"`
	PromptDetails     wireDetails `json:"prompt_tokens_details"`
	CompletionDetails wireDetails `json:"completion_tokens_details"`
}

// Tier is the name of a service tier; empty for impossible ones.
type Tier string

func (t *Tier) UnmarshalJSON(raw []byte) error {
	const longest = 40
	var name string
	if json.Unmarshal(raw, &name) != nil || len(name) > longest {
		name = ""
	}
	*t = Tier(name)
	return nil
}

type wireDetails struct {
	Cached     tokenCount `json:"cached_tokens"`
	CacheWrite tokenCount `json:"cache_write_tokens"`
	Reasoning  tokenCount `json:"reasoning_tokens"`
}

func (u *Usage) UnmarshalJSON(raw []byte) error {
	type plain Usage
	if json.Unmarshal(raw, (*plain)(u)) != nil {
		*u = Usage{Input: unknownCount, Output: unknownCount}
	}
	return nil
}

// ToModel returns the API's numbers, negative where it gives none. tier is the service tier named by
// the API.
func (u *Usage) ToModel(tier Tier) model.Usage {
	if u == nil {
		return model.Usage{Input: int64(unknownCount), Output: int64(unknownCount), ServiceTier: string(tier)}
	}
	first := func(a, b tokenCount) int64 {
		if a != 0 {
			return int64(a)
		}
		return int64(b)
	}
	return model.Usage{
		Input: first(u.Input, u.Prompt), Cached: first(u.InputDetails.Cached, u.PromptDetails.Cached),
		CacheWrite: first(u.InputDetails.CacheWrite, u.PromptDetails.CacheWrite), ServiceTier: string(tier),
		Output: first(u.Output, u.Completion), Reasoning: first(u.OutputDetails.Reasoning, u.CompletionDetails.Reasoning),
	}
}

// WithPlausibleUsage returns an answer with a possible usage. It estimates missing numbers from the bytes sent
// and received, and also numbers below what any tokenizer makes of the request.
func WithPlausibleUsage(r *model.Response, err error, sent []byte) (*model.Response, error) {
	var failure *model.Failure
	switch {
	case errors.As(err, &failure):
		failure.Usage = knownUsage(failure.Usage)
		if failure.Kind == model.StreamCut && failure.Usage.Total() == 0 { // the request was read, and nobody will tell
			failure.Usage.Input = estimateTokens(textBytes(sent))
		}
	case err == nil:
		received := 0
		for _, item := range r.Output {
			received += len(item)
		}
		r.Usage, r.EstimatedUsage = plausibleUsage(r.Usage, textBytes(sent), received)
	}
	return r, err
}

// knownUsage returns the usage with unknown (negative) numbers as 0.
func knownUsage(u model.Usage) model.Usage {
	u.Input, u.Output = max(u.Input, 0), max(u.Output, 0)
	u.Cached, u.Reasoning = min(max(u.Cached, 0), u.Input), min(max(u.Reasoning, 0), u.Output)
	u.CacheWrite = min(max(u.CacheWrite, 0), u.Input-u.Cached)
	return u
}

// plausibleUsage returns a possible usage, and whether it had to estimate. Some APIs count cached tokens beside the
// input, and reasoning beside the output.
func plausibleUsage(u model.Usage, sent, received int) (usage model.Usage, estimated bool) {
	if u.Input >= 0 && max(u.Cached, u.CacheWrite) > u.Input {
		u.Input += max(u.Cached, 0) + max(u.CacheWrite, 0)
	}
	if u.Output >= 0 && u.Reasoning > u.Output {
		u.Output += u.Reasoning
	}
	if u.Input < 0 || u.Input*longestToken < int64(sent) {
		u.Input, u.Cached, u.CacheWrite, estimated = estimateTokens(sent), 0, 0, true
	}
	if u.Output < 0 || estimated && u.Output == 0 {
		u.Output, u.Reasoning, estimated = estimateTokens(received), 0, true
	}
	return knownUsage(u), estimated
}

func estimateTokens(size int) int64 { return int64(size+bytesPerToken-1) / bytesPerToken }

// textBytes returns the length of a request without its images: their tokens do not depend on their
// bytes.
func textBytes(request []byte) int {
	size := len(request)
	mark := []byte(";base64,")
	for {
		_, rest, isImage := bytes.Cut(request, mark)
		if !isImage {
			return size
		}
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			return size - len(rest)
		}
		size, request = size-end, rest[end:]
	}
}
