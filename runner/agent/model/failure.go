package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// Failure is a failed request.
type Failure struct {
	Kind       Kind
	Status     int    // HTTP status; 0 if there was none
	Code       string // the API's error code
	Message    string // the API's message
	RetryAfter time.Duration
	Cause      error
	Data       []byte // the beginning of an answer that could not be read
	Usage      Usage  // usage of the failed answer, if the API reports it
	Attempts   int    // number of attempts; 0 counts as 1
	Permanent  bool   // repeating the request cannot help, whatever the kind
	Advice     string // begins the remedy in the message of Stop; may be empty
	Quirk      Quirk  // quirk of the endpoint that the failure reveals, or ""
}

// Kind classifies a failure by its remedy.
type Kind string

// The kinds. Each becomes a reason of model_failed.
const (
	Unreachable    Kind = "unreachable"     // no connection, or it broke before an answer
	StreamCut      Kind = "stream_cut"      // the answer ended before its last event
	Incomplete     Kind = "incomplete"      // the answer was stopped at a limit of the API
	Silent         Kind = "silent"          // no event for the idle limit
	Malformed      Kind = "malformed"       // an answer that is not what the API describes
	RateLimited    Kind = "rate_limited"    // 429 that passes
	TierBusy       Kind = "tier_busy"       // 429: the tier has no room now
	TierUnknown    Kind = "tier_unknown"    // 400: the model, or the endpoint, has no such tier
	ServerError    Kind = "server_error"    // 5xx, 408, 409 and failures that pass
	Quota          Kind = "quota"           // no money left
	Unauthorized   Kind = "unauthorized"    // 401
	Identity       Kind = "identity"        // the identity of the job gave no key
	Forbidden      Kind = "forbidden"       // 403
	NotFound       Kind = "not_found"       // 404: the model or the URL
	ContextLength  Kind = "context_length"  // the history does not fit
	Refused        Kind = "refused"         // by the provider's policies
	InvalidRequest Kind = "invalid_request" // 400 and other refusals
	ScriptMismatch Kind = "script_mismatch" // a scripted session does not fit the run
)

// kindSentences explains each kind and names its remedy.
var kindSentences = map[Kind]struct{ happened, remedy string }{
	Unreachable:    {"The model's API could not be reached", "check the network and model.base_url, then run again"},
	StreamCut:      {"The model's answer broke off", "run again; if it stays, something between here and the API ends long answers early"},
	Incomplete:     {"The model's answer was stopped before its end", "run again; if it stays, lower model.reasoning_effort, raise model.max_output_tokens or give a smaller task"},
	Silent:         {"The model's API fell silent", "run again; the API stopped sending"},
	Malformed:      {"The model's API sent what it does not describe", "check that model.base_url speaks the API that model.wire names; the transcript has what came"},
	RateLimited:    {"The model's API has a rate limit that is used up", "run again later or ask for a higher rate limit"},
	TierBusy:       {"The model's API has no room at this tier", "run again later, or take model.service_tier out"},
	TierUnknown:    {"The model's API does not have this tier", "take model.service_tier out, or set one that the model has"},
	ServerError:    {"The model's API failed", "run again later"},
	Quota:          {"The quota for the model is used up", "check the plan and billing of the account that the key belongs to"},
	Unauthorized:   {"The model's API refused the key", "check the key in OPENAI_API_KEY or in the variable that model.api_key_env names, or with model.auth: oidc what the service account may do"},
	Identity:       {"The identity of the job gave no key", "check model.identity, what OpenAI was told of tokens that it takes, and the workflow's permission id-token: write"},
	Forbidden:      {"The key may not be used for this", "the key may not use this model or endpoint; check its project and permissions"},
	NotFound:       {"The model's API does not know the model or the path", "check model.name and model.base_url"},
	ContextLength:  {"The conversation is longer than the model's window", "give a smaller task or a model with a larger window"},
	Refused:        {"The model or its provider refuses the task", "the provider's policies refuse this task; reword it"},
	InvalidRequest: {"The model's API refused the request", "check model.name, model.reasoning_effort and what the endpoint supports"},
	ScriptMismatch: {"The scripted session does not fit the run", "correct the scripted session, or run without --replay"},
}

func (f *Failure) Error() string {
	detail := f.Detail()
	if f.Status != 0 {
		return fmt.Sprintf("model request: %s (HTTP %d): %s", f.Kind, f.Status, detail)
	}
	return fmt.Sprintf("model request: %s: %s", f.Kind, detail)
}

// Detail returns the API's message, or else the cause, as one line of limited length.
func (f *Failure) Detail() string {
	detail := f.Message
	if detail == "" && f.Cause != nil {
		detail = f.Cause.Error()
	}
	return clip.Line(detail, 500)
}

func (f *Failure) Unwrap() error { return f.Cause }

// Temporary reports whether the same request may succeed later.
func (f *Failure) Temporary() bool {
	switch f.Kind {
	case Unreachable, StreamCut, Incomplete, Silent, RateLimited, TierBusy, ServerError:
		return !f.Permanent
	}
	return false
}

// TryOtherModel reports whether another model of the endpoint may succeed, because this one is missing, forbidden, out
// of quota or down.
func (f *Failure) TryOtherModel() bool {
	switch f.Kind {
	case NotFound, Forbidden, Quota, StreamCut, Silent, RateLimited, TierBusy, ServerError:
		return true
	}
	return false
}

// Stop returns the error that ends the run because of f.
func (f *Failure) Stop() *outcome.Stop {
	status := ""
	if f.Status != 0 {
		status = fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	if f.Attempts > 1 {
		status += fmt.Sprintf(" after %d attempts", f.Attempts)
	}
	detail := strings.TrimSuffix(f.Detail(), ".")
	if f.RetryAfter >= time.Second {
		detail += fmt.Sprintf("; it asks to wait %s", clip.Duration(f.RetryAfter.Round(time.Second)))
	}
	sentence := kindSentences[f.Kind]
	return outcome.Stopf(outcome.ModelFailed, string(f.Kind), "%s%s: %s; %s.", sentence.happened, status, detail, f.Advice+sentence.remedy).Because(f)
}
