package responses

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/auth"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// jobToken is the token of a job.
type jobToken struct{}

func (jobToken) TokenType() auth.SubjectTokenType                        { return auth.SubjectTokenTypeJWT }
func (jobToken) GetToken(context.Context, auth.HTTPDoer) (string, error) { return "token", nil }

// internet answers requests.
type internet func(*http.Request) (status int, body string)

func (i internet) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := i(r)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Every kind of request replaces a key that is refused once, and no more than once.
func TestReplacesRefusedKeyOnce(t *testing.T) {
	for name, test := range map[string]struct {
		refused int // keys, from the first on
		ask     func(*Client) error
		want    []string // keys that came
		fails   bool
	}{
		"an answer":                 {1, answers, []string{"Bearer key-1", "Bearer key-2"}, false},
		"a compaction":              {1, compacts, []string{"Bearer key-1", "Bearer key-2"}, false},
		"an answer by none":         {9, answers, []string{"Bearer key-1", "Bearer key-2"}, true},
		"a compaction by none":      {9, compacts, []string{"Bearer key-1", "Bearer key-2"}, true},
		"an answer by the first":    {0, answers, []string{"Bearer key-1"}, false},
		"a compaction by the first": {0, compacts, []string{"Bearer key-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			given, came := 0, []string(nil)
			api := must.Get(New(model.Endpoint{
				Workload: &auth.WorkloadIdentity{IdentityProviderID: "idp", ServiceAccountID: "svc", Provider: jobToken{}},
				Transport: internet(func(r *http.Request) (int, string) {
					if r.URL.String() == auth.TokenExchangeURL {
						given++
						return 200, fmt.Sprintf(`{"access_token": "key-%d", "expires_in": 3600}`, given)
					}
					came = append(came, r.Header.Get("Authorization"))
					if len(came) <= test.refused {
						return 401, `{"error": {"code": "invalid_api_key", "message": "ended"}}`
					}
					return 200, `{"id": "r", "status": "completed", "output": [{"type": "compaction", "encrypted_content": "x"}], "usage": {"input_tokens": 9, "output_tokens": 1}}`
				}),
			}))(t)
			err := test.ask(api)
			must.Same(t, test.fails, err != nil, "it failed", err)
			must.Same(t, test.want, came, "keys")
		})
	}
}

func answers(o *Client) error {
	_, err := o.Respond(context.Background(), model.Request{Settings: model.Settings{Model: "m", NoStream: true}}, model.NoObserver{})
	return err
}

func compacts(o *Client) error {
	_, err := o.Compact(context.Background(), model.Request{Settings: model.Settings{Model: "m"}})
	return err
}
