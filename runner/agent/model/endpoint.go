package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3/auth"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1/"

// Endpoint is the address of an API with credentials.
type Endpoint struct {
	BaseURL string // DefaultBaseURL when empty
	APIKey  string // empty for an endpoint without keys
	// Workload gets keys in exchange for identity tokens, instead of APIKey. It may be nil. Clients of Chat
	// Completions ignore it.
	Workload *auth.WorkloadIdentity
	// Transport sends the requests, including those for the exchange. Nil means the default one.
	Transport http.RoundTripper
	Headers   map[string]string
	// UserAgent names the program to the API.
	UserAgent string
	// IdleLimit is the maximum wait for the next event of a stream, or for a complete answer. 0 means 5 minutes.
	IdleLimit time.Duration
}

// Base returns the API's address, whose path ends in a slash. It returns an error for an invalid address, and for http
// to a public host, where others could read the key.
func (e Endpoint) Base() (*url.URL, error) {
	u, err := url.Parse(cmp.Or(e.BaseURL, DefaultBaseURL))
	isWebURL := err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
	if !isWebURL {
		return nil, errors.New("the model's address (model.base_url, else OPENAI_BASE_URL) is not an http or https URL")
	}
	if u.Scheme == "http" && !reach.IsLocal(u.Hostname()) {
		return nil, fmt.Errorf("the model's address (model.base_url, else OPENAI_BASE_URL) is http to the public host %s, where others could read the key and the conversation", u.Hostname())
	}
	return u.JoinPath("/"), nil
}
