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

	"github.com/openai/openai-go/v3/auth"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// maxAnswerBytes is the maximum size of an answer with a key, in bytes.
const maxAnswerBytes = 64 << 10

// RoundTrip sends a request to the API or to the token exchange. It reports the key from a token exchange as a secret,
// and returns a refused exchange as an error with more detail than openai-go gives.
func (i *Identity) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != auth.TokenExchangeURL {
		return http.DefaultTransport.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx))
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
		return nil, refusalFailure(answer.StatusCode, "auth.openai.com", cmp.Or(reason, "no words")+"; "+i.claimsText())
	}
	if reply.Key == "" {
		return nil, identityFailure("auth.openai.com answers with something else than a key")
	}
	i.learn("the key of model.auth: oidc", reply.Key)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return answer, nil
}

// TokenType returns the type of the job's tokens.
func (i *Identity) TokenType() auth.SubjectTokenType { return auth.SubjectTokenTypeJWT }

// GetToken returns a token of the job after reporting it as a secret. It returns an error for a text that has not the
// form of a signed JSON Web Token (RFC 7515, section 7.1). So a wrong file name never sends another file's content to a
// server.
func (i *Identity) GetToken(ctx context.Context, _ auth.HTTPDoer) (string, error) {
	token, err := i.source.read(ctx)
	if err != nil {
		return "", err
	}
	token = strings.TrimSpace(token)
	claims, err := claimsOf(token)
	if err != nil {
		return "", identityFailure("what %s gives is no JSON Web Token (%v)", i.source.name, err)
	}
	i.learn("the identity token of the job", token)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claims = claims
	return token, nil
}

// claimsText describes the claims of the last token.
func (i *Identity) claimsText() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return fmt.Sprintf("the token has the issuer %s, the subject %s and the audience %s", i.claims.Issuer, i.claims.Subject, i.claims.Audience)
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
