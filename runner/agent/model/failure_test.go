package model

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Which failures have another model go on, and which the same one asked again.
func TestWhatLeadsToAnotherModel(t *testing.T) {
	for _, test := range []struct {
		name             string
		status           int
		body             string
		kind             Kind
		again, elsewhere bool
	}{
		{"a model that is not there", 404, `{"error":{"code":"model_not_found"}}`, NotFound, false, true},
		{"one by a status that others have for it", 400, `{"error":{"code":"model_not_found"}}`, NotFound, false, true},
		{"no access", 403, `{}`, Forbidden, false, true},
		{"no quota", 429, `{"error":{"code":"insufficient_quota"}}`, Quota, false, true},
		{"no money", 402, `{}`, Quota, false, true},
		{"a rate limit", 429, `{"error":{"code":"rate_limit_exceeded"}}`, RateLimited, true, true},
		{"a server that is broken", 503, `{}`, ServerError, true, true},
		{"no room at the tier", 429, `{"error":{"code":"resource_unavailable"}}`, TierBusy, true, true},
		{"no room, in words", 429, `{"error":{"message":"Resource Unavailable"}}`, TierBusy, true, true},
		{"no such tier", 400, `{"error":{"message":"Invalid service_tier argument"}}`, TierUnknown, false, false},
		{"no such tier, by the parameter", 400, `{"error":{"message":"Invalid value: 'flex'","param":"service_tier"}}`, TierUnknown, false, false},
		{"a refusal of content", 400, `{"error":{"code":"content_policy_violation"}}`, Refused, false, false},
		{"a refusal with a status of access", 403, `{"error":{"code":"cyber_policy"}}`, Refused, false, false},
		{"one in words, with a status of access", 403, `{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged"}}`, Refused, false, false},
		{"one of a filter", 400, `{"error":{"code":"content_filter","message":"The response was filtered"}}`, Refused, false, false},
		{"a wrong request", 400, `{"error":{"code":"invalid_value"}}`, InvalidRequest, false, false},
		{"a wrong key", 401, `{}`, Unauthorized, false, false},
		{"a long conversation", 400, `{"error":{"code":"context_length_exceeded"}}`, ContextLength, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := refusal(&http.Response{StatusCode: test.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(test.body))})
			if f.Kind != test.kind || f.Temporary() != test.again || f.Elsewhere() != test.elsewhere {
				t.Errorf("%s, again %t, elsewhere %t", f.Kind, f.Temporary(), f.Elsewhere())
			}
		})
	}
	for kind, elsewhere := range map[Kind]bool{Unreachable: false, StreamCut: true, Silent: true, Incomplete: false, Malformed: false, Identity: false} {
		if got := (&Failure{Kind: kind}).Elsewhere(); got != elsewhere {
			t.Errorf("%s leads elsewhere: %t", kind, got)
		}
	}
	if (&Failure{Kind: ServerError, Lasting: true}).Temporary() {
		t.Error("what lasts is asked again")
	}
}

// An answer that fails on its way has no status: its code alone says that another try, or another
// model, is no way out.
func TestAnAnswerThatIsRefusedLeadsNowhere(t *testing.T) {
	for code, kind := range map[string]Kind{
		"invalid_prompt": Refused, "bio_policy": Refused, "image_content_policy_violation": Refused, "content_filter": Refused, "invalid_image": InvalidRequest, "data_residency_mismatch": InvalidRequest,
	} {
		reader := &itemReader{}
		_, err := reader.event([]byte(`{"type":"response.failed","response":{"status":"failed","error":{"code":"` + code + `","message":"No."},"output":[]}}`))
		failure, is := errors.AsType[*Failure](err)
		if !is || failure.Kind != kind || failure.Temporary() || failure.Elsewhere() {
			t.Errorf("%s: %v", code, err)
		}
	}
}
