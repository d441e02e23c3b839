package model

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// requestFailure converts an error of openai-go.
func requestFailure(err error) *Failure {
	var refused *Failure
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, bufio.ErrTooLong):
		return &Failure{Kind: Malformed, Err: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Failure{Kind: StreamCut, Err: err}
	}
	return &Failure{Kind: Unreachable, Err: err}
}

// refusal reads why a request was refused.
func refusal(answer *http.Response) *Failure {
	const most = 64 << 10
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, most)) // what came by then is all that is told
	said := errorIn(raw)
	f := said.failure(answer.StatusCode)
	f.RetryAfter = cmp.Or(waitIn(answer.Header, raw), f.RetryAfter)
	if f.Kind == InvalidRequest && said.Param == "service_tier" {
		f.Kind = TierUnknown
	}
	f.Message = cmp.Or(f.Message, http.StatusText(answer.StatusCode))
	return f
}

// apiError is the API's error object.
type apiError struct {
	Code    string
	Type    string
	Message string
	Param   string
	Wait    time.Duration // that its fields ask for
}

// UnmarshalJSON also accepts the forms of compatible endpoints: a bare text, a number as the code,
// an object in place of a text.
func (e *apiError) UnmarshalJSON(raw []byte) error {
	var fields struct {
		Code, Type, Message, Detail, Param looseText
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		var words looseText
		if err := json.Unmarshal(raw, &words); err != nil {
			return err
		}
		*e = apiError{Message: string(words)}
		return nil
	}
	*e = apiError{string(fields.Code), string(fields.Type), cmp.Or(string(fields.Message), string(fields.Detail)), string(fields.Param), waitIn(nil, raw)}
	return nil
}

// looseText is a text, or the JSON found in place of one.
type looseText string

func (t *looseText) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	*t = looseText(text)
	return nil
}

// failure returns the meaning of the error with an HTTP status; 0 for none.
func (e *apiError) failure(status int) *Failure {
	f := apiFailure(status, e.kind(), e.Message)
	f.RetryAfter = cmp.Or(e.Wait, f.RetryAfter)
	return f
}

// kind is the code; some endpoints have a type alone, or repeat the status.
func (e *apiError) kind() string {
	if _, err := strconv.Atoi(e.Code); e.Code != "" && err != nil {
		return e.Code
	}
	return e.Type
}

// errorIn finds the error in the body of an answer. A page instead of JSON has
// no more to say.
func errorIn(body []byte) *apiError {
	var several []json.RawMessage
	if json.Unmarshal(body, &several) == nil && len(several) > 0 { // as Gemini has it
		body = several[0]
	}
	var wrapped struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(body, &wrapped) == nil && wrapped.Error != nil {
		return wrapped.Error
	}
	var said apiError
	if json.Unmarshal(body, &said) != nil {
		return &apiError{}
	}
	return &said
}

// codeKinds maps the API's error codes; they say more than the HTTP status.
var codeKinds = map[string]Kind{
	"insufficient_quota":            Quota,
	"billing_hard_limit_reached":    Quota,
	"usage_not_included":            Quota,
	"rate_limit_exceeded":           RateLimited,
	"slow_down":                     RateLimited,
	"resource_unavailable":          TierBusy,
	"server_error":                  ServerError,
	"server_is_overloaded":          ServerError,
	"vector_store_timeout":          ServerError,
	"context_length_exceeded":       ContextLength,
	"invalid_prompt":                Refused,
	"cyber_policy":                  Refused,
	"bio_policy":                    Refused,
	"misalignment_policy_violation": Refused,
	"content_policy_violation":      Refused,
	"content_filter":                Refused,
	"ResponsibleAIPolicyViolation":  Refused,
	"model_not_found":               NotFound,
	"invalid_api_key":               Unauthorized,

	"image_content_policy_violation": Refused,
	"data_residency_mismatch":        InvalidRequest,
	sealedCode:                       InvalidRequest,
	"invalid_image":                  InvalidRequest,
	"invalid_image_format":           InvalidRequest,
	"invalid_base64_image":           InvalidRequest,
	"invalid_image_url":              InvalidRequest,
	"invalid_image_mode":             InvalidRequest,
	"image_too_large":                InvalidRequest,
	"image_too_small":                InvalidRequest,
	"image_parse_error":              InvalidRequest,
	"image_file_too_large":           InvalidRequest,
	"image_file_not_found":           InvalidRequest,
	"empty_image_file":               InvalidRequest,
	"unsupported_image_media_type":   InvalidRequest,
}

var statusKinds = map[int]Kind{
	http.StatusUnauthorized:          Unauthorized,
	http.StatusPaymentRequired:       Quota,
	http.StatusForbidden:             Forbidden,
	http.StatusNotFound:              NotFound,
	http.StatusRequestTimeout:        ServerError,
	http.StatusConflict:              ServerError,
	http.StatusRequestEntityTooLarge: ContextLength,
	http.StatusTooManyRequests:       RateLimited,
}

// tooLong matches messages about a conversation above the context window, from endpoints without a
// code for it.
var tooLong = regexp.MustCompile(`(?i)context (?:length|window|size)|(?:prompt|input) is too long`)

// flagged matches refusals of content from endpoints without a code for them. Some use the status
// of a key without permission.
var flagged = regexp.MustCompile(`(?i)\bmoderation\b|content (?:policy|filter|management)`)

// noRoom and ofTier match messages about a full or unknown tier, from endpoints without a code for
// it.
var (
	noRoom = regexp.MustCompile(`(?i)resources?[ _](?:is |are )?unavailable`)
	ofTier = regexp.MustCompile(`(?i)service[_ ]tier`)
)

func apiFailure(status int, code, message string) *Failure {
	return &Failure{Status: status, Code: code, Message: message, Kind: kindOf(status, code, message), RetryAfter: waitInWords(message)}
}

func kindOf(status int, code, message string) Kind {
	switch {
	case codeKinds[code] != "":
		return codeKinds[code]
	case (status == 0 || status == http.StatusBadRequest || status == http.StatusNotFound) && sealedWords().MatchString(message):
		return InvalidRequest
	case (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && tooLong.MatchString(message):
		return ContextLength
	case status == http.StatusTooManyRequests && noRoom.MatchString(message):
		return TierBusy
	case (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && ofTier.MatchString(message):
		return TierUnknown
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests && flagged.MatchString(message):
		return Refused
	case statusKinds[status] != "":
		return statusKinds[status]
	case status >= 500 || status == 0:
		return ServerError
	}
	return InvalidRequest
}
