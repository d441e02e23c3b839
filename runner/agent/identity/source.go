package identity

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/auth"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// tokenSource provides the identity tokens of a job.
type tokenSource struct {
	name string // describes the source in messages
	read func(ctx context.Context) (string, error)
}

// Variables of GitHub and Forgejo Actions for requesting a token.
const (
	requestURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	requestToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
)

// findSource returns the source of tokens: the file named by the job or the environment, or else the workflow
// service. It does not look for a Kubernetes token, because that may be meant for the cluster alone.
func findSource(j job.Identity, env settings.Environment) (tokenSource, error) {
	if path := cmp.Or(j.TokenFile, env.Get(settings.IdentityFileVariable)); path != "" {
		return tokenFileAt(path)
	}
	return workflowServiceFrom(env)
}

// maxTokenBytes is the maximum size of a token, in bytes.
const maxTokenBytes = 64 << 10

// tokenFileAt returns the source for a file with a job's token, which must exist. It reads the file for each token,
// because the file may be renewed.
func tokenFileAt(path string) (tokenSource, error) {
	if !filepath.IsAbs(path) {
		return tokenSource{}, missingSettingStop("no file with the job's token is named; set model.identity.token_file or %s to its absolute path", settings.IdentityFileVariable)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return tokenSource{}, missingSettingStop("there is no file %s with the job's token; mount or write it, or name another by model.identity.token_file or %s", path, settings.IdentityFileVariable)
	}
	return tokenSource{"the file " + path, func(ctx context.Context) (string, error) {
		raw, err := boundedfile.Read(ctx, path, maxTokenBytes)
		if err != nil {
			return "", identityFailure("the file with the job's token cannot be read: %v", err)
		}
		return string(raw), nil
	}}, nil
}

// workflowServiceFrom returns the source for the service of a GitHub or Forgejo workflow that env describes. Its address
// must be https, because the request carries a secret. On this machine http is allowed too.
func workflowServiceFrom(env settings.Environment) (tokenSource, error) {
	address, bearer := env.Get(requestURL), env.Get(requestToken)
	if address == "" || bearer == "" {
		return tokenSource{}, missingSettingStop("%s is not set: in a workflow of GitHub give the job permissions: id-token: write, in one of Forgejo enable-openid-connect: true; "+
			"elsewhere name a file with the job's token by model.identity.token_file or %s", requestURL, settings.IdentityFileVariable)
	}
	u, err := url.Parse(address)
	isSafe := err == nil && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()))
	if !isSafe {
		return tokenSource{}, missingSettingStop("%s is no https address", requestURL)
	}
	query := u.Query()
	query.Set("audience", auth.DefaultAudience)
	u.RawQuery = query.Encode()
	return tokenSource{requestURL, func(ctx context.Context) (string, error) { return tokenFromService(ctx, u.String(), bearer) }}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// requestTimeout is the timeout of a request for a token or a key.
const requestTimeout = 20 * time.Second

// tokenFromService asks the workflow service at address for the job's token.
func tokenFromService(ctx context.Context, address, bearer string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", identityFailure("ask for the job's token: %v", err)
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Accept", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // the bearer must not go elsewhere
	answer, err := client.Do(request)
	if err != nil {
		return "", &model.Failure{Kind: model.Unreachable, Message: "the service that gives the job's token does not answer", Cause: err}
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxTokenBytes))
	if err != nil {
		return "", &model.Failure{Kind: model.Unreachable, Message: "the answer with the job's token broke off", Cause: err}
	}
	if answer.StatusCode != http.StatusOK {
		return "", refusalFailure(answer.StatusCode, "the service that gives the job's token", "")
	}
	var reply struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return "", identityFailure("the service that gives the job's token answers with something else")
	}
	return reply.Value, nil
}

// claims are the token's fields that OpenAI compares with its settings.
type claims struct {
	Issuer   string          `json:"iss"`
	Subject  string          `json:"sub"`
	Audience json.RawMessage `json:"aud"`
}

// claimsOf returns the claims of a token, or an error unless it has the form of a signed JSON Web Token.
func claimsOf(token string) (c claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) >= maxTokenBytes {
		return c, fmt.Errorf("it has %d parts, not 3", len(parts))
	}
	for _, part := range parts {
		if _, err := base64.RawURLEncoding.DecodeString(part); err != nil || part == "" {
			return c, fmt.Errorf("a part is not base64")
		}
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1]) // checked above
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("its claims are no JSON")
	}
	return c, nil
}
