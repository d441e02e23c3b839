package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

const (
	// maxTokens is more than a model reads or writes in one answer.
	maxTokens = 1 << 30
	// bytesPerToken is the assumed length of a token if the API gives no plausible usage. No tokenizer's average token
	// has longestToken bytes.
	bytesPerToken = 4
	longestToken  = 1024
)

// tokenCount is a number of tokens from an API. Any other JSON value gives unknownCount and no error, so that a wrong
// usage does not fail the answer.
type tokenCount int64

const unknownCount tokenCount = -1

// UnmarshalJSON accepts every value.
func (c *tokenCount) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*c = 0
		return nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	isCount := err == nil && n >= 0 && n <= maxTokens && n == math.Trunc(n)
	*c = unknownCount
	if isCount {
		*c = tokenCount(n)
	}
	return nil
}

// Usage is the usage of an answer, with the field names of both APIs.
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

// Tier is the name of a service tier, or "" if the API sent none that is plausible.
type Tier string

// UnmarshalJSON accepts every value.
func (t *Tier) UnmarshalJSON(raw []byte) error {
	const maxLength = 40
	var name string
	if json.Unmarshal(raw, &name) != nil || len(name) > maxLength {
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

// UnmarshalJSON accepts every value. Anything but an object gives unknown counts.
func (u *Usage) UnmarshalJSON(raw []byte) error {
	type plain Usage
	if json.Unmarshal(raw, (*plain)(u)) != nil {
		*u = Usage{Input: unknownCount, Output: unknownCount}
	}
	return nil
}

// ToModel converts the usage for package model. Unknown counts are negative, as are those of a nil usage. tier is the
// answer's service tier.
func (u *Usage) ToModel(tier Tier) model.Usage {
	if u == nil {
		return model.Usage{Input: int64(unknownCount), Output: int64(unknownCount), ServiceTier: string(tier)}
	}
	first := func(responses, chat tokenCount) int64 { return int64(cmp.Or(responses, chat)) } // an API fills only its own fields
	return model.Usage{
		Input: first(u.Input, u.Prompt), Cached: first(u.InputDetails.Cached, u.PromptDetails.Cached),
		CacheWrite: first(u.InputDetails.CacheWrite, u.PromptDetails.CacheWrite), ServiceTier: string(tier),
		Output: first(u.Output, u.Completion), Reasoning: first(u.OutputDetails.Reasoning, u.CompletionDetails.Reasoning),
	}
}

// WithPlausibleUsage corrects the usage of an answer r, or of the failure err. It estimates missing and impossibly
// small counts from the lengths of the answer and of sent, the request's body. It returns r and err.
func WithPlausibleUsage(r *model.Response, err error, sent []byte) (*model.Response, error) {
	var failure *model.Failure
	switch {
	case errors.As(err, &failure):
		failure.Usage = knownUsage(failure.Usage)
		if failure.Kind == model.StreamCut && failure.Usage.Total() == 0 { // the API has read the request, but reports no usage
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

// knownUsage returns the usage with unknown (negative) counts set to 0. It limits each part to its total.
func knownUsage(u model.Usage) model.Usage {
	u.Input, u.Output = max(u.Input, 0), max(u.Output, 0)
	u.Cached, u.Reasoning = min(max(u.Cached, 0), u.Input), min(max(u.Reasoning, 0), u.Output)
	u.CacheWrite = min(max(u.CacheWrite, 0), u.Input-u.Cached)
	return u
}

// plausibleUsage returns a corrected usage, and whether it had to estimate counts. It adds cached tokens to the input,
// and reasoning to the output, for APIs that count them separately. sent and received are numbers of bytes.
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
	isMissing := estimated && u.Output == 0
	if u.Output < 0 || isMissing {
		u.Output, u.Reasoning, estimated = estimateTokens(received), 0, true
	}
	return knownUsage(u), estimated
}

// estimateTokens returns the estimated tokens of a text with size bytes.
func estimateTokens(size int) int64 { return int64(size+bytesPerToken-1) / bytesPerToken }

// textBytes returns the length of a request without the data of its images, whose size says nothing about their
// tokens.
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
