package exchange

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// Which failures have another model go on, and which the same one asked again.
func TestClassifiesFailures(t *testing.T) {
	for _, test := range []struct {
		name             string
		status           int
		body             string
		kind             model.Kind
		again, elsewhere bool
	}{
		{"a model that is not there", 404, `{"error":{"code":"model_not_found"}}`, model.NotFound, false, true},
		{"a redirect to nowhere", 307, ``, model.NotFound, false, true},
		{"one by a status that others have for it", 400, `{"error":{"code":"model_not_found"}}`, model.NotFound, false, true},
		{"no access", 403, `{}`, model.Forbidden, false, true},
		{"no quota", 429, `{"error":{"code":"insufficient_quota"}}`, model.Quota, false, true},
		{"no money", 402, `{}`, model.Quota, false, true},
		{"a rate limit", 429, `{"error":{"code":"rate_limit_exceeded"}}`, model.RateLimited, true, true},
		{"a server that is broken", 503, `{}`, model.ServerError, true, true},
		{"no room at the tier", 429, `{"error":{"code":"resource_unavailable"}}`, model.TierBusy, true, true},
		{"no room, in words", 429, `{"error":{"message":"Resource Unavailable"}}`, model.TierBusy, true, true},
		{"no such tier", 400, `{"error":{"message":"Invalid service_tier argument"}}`, model.TierUnknown, false, false},
		{"no such tier, by the parameter", 400, `{"error":{"message":"Invalid value: 'flex'","param":"service_tier"}}`, model.TierUnknown, false, false},
		{"a refusal of content", 400, `{"error":{"code":"content_policy_violation"}}`, model.Refused, false, false},
		{"a refusal with a status of access", 403, `{"error":{"code":"cyber_policy"}}`, model.Refused, false, false},
		{"one in words, with a status of access", 403, `{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged"}}`, model.Refused, false, false},
		{"one of a filter", 400, `{"error":{"code":"content_filter","message":"The response was filtered"}}`, model.Refused, false, false},
		{"a wrong request", 400, `{"error":{"code":"invalid_value"}}`, model.InvalidRequest, false, false},
		{"a wrong key", 401, `{}`, model.Unauthorized, false, false},
		{"a long one, to vLLM", 400, `{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","code":400}`, model.ContextLength, false, false},
		{"to llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, model.ContextLength, false, false},
		{"to a proxy", 413, "<html>", model.ContextLength, false, false},
		{"a long conversation", 400, `{"error":{"code":"context_length_exceeded"}}`, model.ContextLength, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := Refusal(&http.Response{StatusCode: test.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(test.body))})
			if f.Kind != test.kind || f.Temporary() != test.again || f.TryOtherModel() != test.elsewhere {
				t.Errorf("%s, again %t, elsewhere %t", f.Kind, f.Temporary(), f.TryOtherModel())
			}
		})
	}
	// An answer that fails on its way has no status: its code alone says that another try, or another model, is no
	// way out.
	for code, kind := range map[string]model.Kind{
		"invalid_prompt": model.Refused, "bio_policy": model.Refused, "image_content_policy_violation": model.Refused, "content_filter": model.Refused,
		"invalid_image": model.InvalidRequest, "data_residency_mismatch": model.InvalidRequest, "context_length_exceeded": model.ContextLength,
	} {
		if f := Failure(0, code, "No."); f.Kind != kind || f.Temporary() || f.TryOtherModel() {
			t.Errorf("%s: %v", code, f)
		}
	}
	for kind, elsewhere := range map[model.Kind]bool{model.Unreachable: false, model.StreamCut: true, model.Silent: true, model.Incomplete: false, model.Malformed: false, model.Identity: false} {
		must.Same(t, elsewhere, (&model.Failure{Kind: kind}).TryOtherModel(), kind)
	}
	must.Same(t, false, (&model.Failure{Kind: model.ServerError, Permanent: true}).Temporary(), "what lasts is asked again")
}

// What Go calls the steps of a request helps nobody to set one up.
func TestWordsFailuresOfRequests(t *testing.T) {
	for want, err := range map[string]error{
		"the answer is too long; ":               bufio.ErrTooLong,
		"reached: connection refused; check the": &url.Error{Op: "Post", URL: "https://api.example.com/v1/responses?key=secret", Err: syscall.ECONNREFUSED},
		"connection refused; check HTTPS_PROXY;": &net.OpError{Op: "proxyconnect", Net: "tcp", Err: syscall.ECONNREFUSED},
	} {
		must.Contain(t, FailureOf(err).Stop().Message, want)
	}
}

// A page to log in, such as a proxy's, is named by its address without what may be secret there.
func TestNamesWebPageInPlaceOfAnswer(t *testing.T) {
	from := must.Get(http.NewRequest(http.MethodPost, "https://user:pass@proxy.example.com/v1/responses?key=secret", nil))(t)
	f := webPageFailure(&http.Response{Header: http.Header{"Content-Type": {"Text/HTML; charset=utf-8"}}, Request: from})
	if f == nil || f.Message != "a web page came from https://proxy.example.com/v1/responses in the place of an answer" {
		t.Errorf("%v", f)
	}
}
