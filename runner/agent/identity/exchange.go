package identity

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3/auth"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// keyExchange is a RoundTripper that also inspects token exchanges, to report their failures in more detail than
// openai-go does.
type keyExchange struct {
	next  http.RoundTripper
	learn func(name, secret string)

	mu     sync.Mutex
	claims claims // of the last token
}

// maxAnswerBytes is the maximum size of an answer with a key, in bytes.
const maxAnswerBytes = 64 << 10

// RoundTrip sends a request. For a token exchange it also reports the new key as a secret, and turns a refusal into
// an error that people understand.
func (e *keyExchange) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != auth.TokenExchangeURL {
		return e.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := e.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	var reply struct {
		Key         string `json:"access_token"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(raw, &reply) // an answer without a key is refused below
	if answer.StatusCode != http.StatusOK {
		reason := strings.TrimSpace(reply.Error + " " + reply.Description)
		return nil, refusalFailure(answer.StatusCode, "auth.openai.com", cmp.Or(reason, "no words")+"; "+e.claimsText())
	}
	if reply.Key == "" {
		return nil, identityFailure("auth.openai.com answers with something else than a key")
	}
	e.learn("the key of model.auth: oidc", reply.Key)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return answer, nil
}

// noteToken reports a token as a secret and keeps its claims for later error messages.
func (e *keyExchange) noteToken(token string) {
	e.learn("the identity token of the job", token)
	claims, err := claimsOf(token)
	if err != nil {
		return // checkedToken has refused such a token already
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claims = claims
}

// claimsText describes the claims of the last token.
func (e *keyExchange) claimsText() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claims.String()
}

// refusalFailure returns the failure for a server that answered a request for a token or key with an HTTP error.
// It is temporary if the status is 429 or 5xx. details follow in the message and may be "".
func refusalFailure(status int, server, details string) *model.Failure {
	f := identityFailure("%s answers with status %d", server, status)
	if details != "" {
		f.Message += ": " + details
	}
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		f.Kind = model.ServerError
	}
	return f
}

func identityFailure(format string, args ...any) *model.Failure {
	return &model.Failure{Kind: model.Identity, Message: fmt.Sprintf(format, args...)}
}
