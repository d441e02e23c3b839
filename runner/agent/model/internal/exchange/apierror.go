package exchange

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// FailureOf returns the failure for an error of sending a request or reading its answer. If err is a failure already,
// it returns that.
func FailureOf(err error) *model.Failure {
	var refused *model.Failure
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, bufio.ErrTooLong):
		return &model.Failure{Kind: model.Malformed, Message: "the answer is too long", Cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &model.Failure{Kind: model.StreamCut, Cause: err}
	}
	if request, isURLError := errors.AsType[*url.Error](err); isURLError {
		err = request.Err // without the address: its query may be a credential
	}
	advice := ""
	if step, isNetworkError := errors.AsType[*net.OpError](err); isNetworkError && step.Op == "proxyconnect" {
		advice = "check HTTPS_PROXY; "
	}
	return &model.Failure{Kind: model.Unreachable, Message: reach.Explain(err), Cause: err, Advice: advice}
}

// Refusal returns the failure for an answer with an error status.
func Refusal(answer *http.Response) *model.Failure {
	const maxBytes = 64 << 10
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, maxBytes)) // after an error, use what has arrived
	apiError := errorIn(raw)
	f := apiError.Failure(answer.StatusCode)
	f.RetryAfter = cmp.Or(WaitIn(answer.Header, raw), f.RetryAfter)
	if f.Kind == model.InvalidRequest && apiError.param == "service_tier" {
		f.Kind = model.TierUnknown
	}
	if f.Kind == model.NotFound {
		f.Advice = askedAddress(answer.Request)
	}
	f.Message = cmp.Or(f.Message, http.StatusText(answer.StatusCode))
	return f
}

// Error is the API's error object.
type Error struct {
	code     string
	typeName string
	message  string
	param    string
	wait     time.Duration // the wait that its fields ask for
}

// UnmarshalJSON also accepts the forms of other endpoints: a bare string, a number as the code, or an object instead
// of a string.
func (e *Error) UnmarshalJSON(raw []byte) error {
	var fields struct {
		Code, Type, Message, Detail, Param LenientText
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		var words LenientText
		if err := json.Unmarshal(raw, &words); err != nil {
			return err
		}
		*e = Error{message: string(words)}
		return nil
	}
	*e = Error{string(fields.Code), string(fields.Type), cmp.Or(string(fields.Message), string(fields.Detail)), string(fields.Param), WaitIn(nil, raw)}
	return nil
}

// LenientText is a JSON string's text, or the raw JSON if there is something else.
type LenientText string

// UnmarshalJSON accepts every value.
func (t *LenientText) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	*t = LenientText(text)
	return nil
}

// TextOf returns the text of a JSON string, or raw itself if it is something else.
func TextOf(raw json.RawMessage) string {
	var text LenientText
	if len(raw) > 0 && json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return string(text)
}

// Failure returns the failure for the error in an answer with this HTTP status, or in a stream if status is 0.
func (e *Error) Failure(status int) *model.Failure {
	f := Failure(status, e.codeOrType(), e.message)
	f.RetryAfter = cmp.Or(e.wait, f.RetryAfter)
	return f
}

// codeOrType returns the error's code. If the code is missing or only repeats the status, it returns the type.
func (e *Error) codeOrType() string {
	_, err := strconv.Atoi(e.code)
	isStatus := err == nil
	if e.code != "" && !isStatus {
		return e.code
	}
	return e.typeName
}

// errorIn returns the error object in the body of an answer. It is empty if the body contains none.
func errorIn(body []byte) *Error {
	var several []json.RawMessage
	if json.Unmarshal(body, &several) == nil && len(several) > 0 { // Gemini wraps the error in a list
		body = several[0]
	}
	var wrapped struct {
		Error *Error `json:"error"`
	}
	if json.Unmarshal(body, &wrapped) == nil && wrapped.Error != nil {
		return wrapped.Error
	}
	var apiError Error
	if json.Unmarshal(body, &apiError) != nil {
		return &Error{}
	}
	return &apiError
}

// codeKinds maps the API's error codes to kinds. They say more than the HTTP status.
var codeKinds = map[string]model.Kind{
	"insufficient_quota":            model.Quota,
	"billing_hard_limit_reached":    model.Quota,
	"usage_not_included":            model.Quota,
	"rate_limit_exceeded":           model.RateLimited,
	"slow_down":                     model.RateLimited,
	"resource_unavailable":          model.TierBusy,
	"server_error":                  model.ServerError,
	"server_is_overloaded":          model.ServerError,
	"vector_store_timeout":          model.ServerError,
	"context_length_exceeded":       model.ContextLength,
	"invalid_prompt":                model.Refused,
	"cyber_policy":                  model.Refused,
	"bio_policy":                    model.Refused,
	"misalignment_policy_violation": model.Refused,
	"content_policy_violation":      model.Refused,
	"content_filter":                model.Refused,
	"ResponsibleAIPolicyViolation":  model.Refused,
	"model_not_found":               model.NotFound,
	"invalid_api_key":               model.Unauthorized,

	"image_content_policy_violation": model.Refused,
	"data_residency_mismatch":        model.InvalidRequest,
	model.SealedCode:                 model.InvalidRequest,
	"invalid_image":                  model.InvalidRequest,
	"invalid_image_format":           model.InvalidRequest,
	"invalid_base64_image":           model.InvalidRequest,
	"invalid_image_url":              model.InvalidRequest,
	"invalid_image_mode":             model.InvalidRequest,
	"image_too_large":                model.InvalidRequest,
	"image_too_small":                model.InvalidRequest,
	"image_parse_error":              model.InvalidRequest,
	"image_file_too_large":           model.InvalidRequest,
	"image_file_not_found":           model.InvalidRequest,
	"empty_image_file":               model.InvalidRequest,
	"unsupported_image_media_type":   model.InvalidRequest,
}

var statusKinds = map[int]model.Kind{
	http.StatusUnauthorized:          model.Unauthorized,
	http.StatusPaymentRequired:       model.Quota,
	http.StatusForbidden:             model.Forbidden,
	http.StatusNotFound:              model.NotFound,
	http.StatusRequestTimeout:        model.ServerError,
	http.StatusConflict:              model.ServerError,
	http.StatusRequestEntityTooLarge: model.ContextLength,
	http.StatusTooManyRequests:       model.RateLimited,
}

// contextLengthWords matches messages that the conversation exceeds the context window, for endpoints without a code for that.
var contextLengthWords = lazyregexp.New(`(?i)context (?:length|window|size)|(?:prompt|input) is too long`)

// refusedContentWords matches refusals of content, for endpoints without a code for them. Some use the status 403.
var refusedContentWords = lazyregexp.New(`(?i)\bmoderation\b|content (?:policy|filter|management)`)

// tierFullWords matches messages about a full tier, tierWords those about an unknown tier, for endpoints without a code for them.
var (
	tierFullWords = lazyregexp.New(`(?i)resources?[ _](?:is |are )?unavailable`)
	tierWords     = lazyregexp.New(`(?i)service[_ ]tier`)
)

// Failure returns the failure for an error with this code and message, in an answer with this HTTP status, or in a
// stream if status is 0.
func Failure(status int, code, message string) *model.Failure {
	return &model.Failure{Status: status, Code: code, Message: message, Kind: kindOf(status, code, message), RetryAfter: waitInWords(message)}
}

// kindOf classifies an error by its code, or else by its message, or else by the HTTP status, which says least. status
// is 0 within a stream.
func kindOf(status int, code, message string) model.Kind {
	isInvalid := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	isMissingItem := status == 0 || status == http.StatusBadRequest || status == http.StatusNotFound
	isBusy := status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
	switch {
	case codeKinds[code] != "":
		return codeKinds[code]
	case isMissingItem && (&model.Failure{Kind: model.InvalidRequest, Message: message}).RefusesSealed():
		return model.InvalidRequest
	case isInvalid && contextLengthWords().MatchString(message):
		return model.ContextLength
	case status == http.StatusTooManyRequests && tierFullWords().MatchString(message):
		return model.TierBusy
	case isInvalid && tierWords().MatchString(message):
		return model.TierUnknown
	case !isBusy && refusedContentWords().MatchString(message):
		return model.Refused
	case statusKinds[status] != "":
		return statusKinds[status]
	case status >= 500 || status == 0:
		return model.ServerError
	case status >= 300 && status < 400: // a redirect that leads nowhere
		return model.NotFound
	}
	return model.InvalidRequest
}
