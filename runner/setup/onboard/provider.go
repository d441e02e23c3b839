package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Provider is a service that offers models at an API address.
type Provider struct {
	Name    string // of --provider
	Title   string
	BaseURL string // empty for OpenAI's own
	Wire    string // the value of model.wire; empty for the Responses API
	Secret  string // name of the secret with the key, and of the variable that init reads
	// KeyEnv is the defaults' variable with the key, or "" for the action's.
	KeyEnv string
	Model  string // suggested to a person; "" for none
	// keyCheckPath is the path below the address that refuses a wrong key with status 401, 403 or
	// refusalStatus.
	keyCheckPath  string
	refusalStatus int
}

const openAI = "https://api.openai.com/v1"

// Providers returns the known providers and a generic one.
func Providers() []Provider {
	return []Provider{
		{Name: "openai", Title: "OpenAI", Secret: "OPENAI_API_KEY", Model: "gpt-5.4", keyCheckPath: "models"},
		{Name: "openrouter", Title: "OpenRouter", BaseURL: "https://openrouter.ai/api/v1", Wire: "chat", Secret: "OPENROUTER_API_KEY", keyCheckPath: "key"},
		{Name: "gemini", Title: "Google Gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", Wire: "chat", Secret: "GEMINI_API_KEY", keyCheckPath: "models", refusalStatus: http.StatusBadRequest},
		{Name: "deepseek", Title: "DeepSeek", BaseURL: "https://api.deepseek.com/v1", Wire: "chat", Secret: "DEEPSEEK_API_KEY", keyCheckPath: "models"},
		{Name: "other", Title: "another endpoint that speaks the Responses API or Chat Completions", Secret: "MODEL_API_KEY", keyCheckPath: "models"},
	}
}

// ProviderNamed returns the provider called name.
func ProviderNamed(name string) (_ Provider, known bool) {
	for _, p := range Providers() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// WithBaseURL returns the provider at another API address; "" keeps its own. The name of the secret depends
// on the address, so that no key is sent to the wrong one.
func (p Provider) WithBaseURL(baseURL string) (Provider, error) {
	if baseURL == "" {
		return p, nil
	}
	u, err := url.Parse(baseURL)
	isPlain := err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
	switch {
	case !isPlain || u.Scheme != "https" && u.Scheme != "http":
		return p, errors.New("the model's address must be like https://HOST/v1, without user and query")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return p, errors.New("http would send the key in the clear: give the model's address with https")
	}
	p.BaseURL = strings.TrimSuffix(baseURL, "/")
	p.Secret = secretNameFor(p.BaseURL)
	return p, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// secretNameFor returns the name of the secret with the key for an API address. "" means OpenAI's address.
func secretNameFor(address string) string {
	address = cmp.Or(strings.TrimSuffix(address, "/"), openAI)
	for _, p := range Providers() {
		if cmp.Or(p.BaseURL, openAI) == address {
			return p.Secret
		}
	}
	other, _ := ProviderNamed("other")
	return other.Secret
}

// parseDefaults returns the provider and the model in a repository's defaults file. api_key_env names both
// the secret and the variable. If it is missing or the action's own variable, the secret's name follows from
// base_url, and KeyEnv is "".
func parseDefaults(content []byte) (p Provider, model string, err error) {
	var defaults struct {
		Model struct {
			Name    string `yaml:"name"`
			BaseURL string `yaml:"base_url"`
			Wire    string `yaml:"wire"`
			KeyEnv  string `yaml:"api_key_env"`
		} `yaml:"model"`
	}
	if err := yaml.Unmarshal(content, &defaults); err != nil {
		return p, "", fmt.Errorf("read %s, which is there: %w", DefaultsPath, err)
	}
	m := defaults.Model
	p = Provider{BaseURL: strings.TrimSuffix(m.BaseURL, "/"), Wire: m.Wire, Secret: secretNameFor(m.BaseURL)}
	if m.KeyEnv == "" || m.KeyEnv == actionKey {
		return p, m.Name, nil
	}
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`).MatchString(m.KeyEnv) {
		return p, "", fmt.Errorf("read %s, which is there: model.api_key_env is no name of a variable", DefaultsPath)
	}
	p.Secret, p.KeyEnv = m.KeyEnv, m.KeyEnv
	return p, m.Name, nil
}

// actionKey is the action's variable with the key.
const actionKey = "OPENAI_API_KEY"

// sharesKey reports whether a key for one provider may be used for the other.
func (p Provider) sharesKey(other Provider) bool {
	return cmp.Or(p.BaseURL, openAI) == cmp.Or(other.BaseURL, openAI) &&
		cmp.Or(p.Wire, "responses") == cmp.Or(other.Wire, "responses") && p.Secret == other.Secret
}

func (p Provider) String() string {
	return fmt.Sprintf("%s with the API %s and the secret %s", cmp.Or(p.BaseURL, openAI), cmp.Or(p.Wire, "responses"), p.Secret)
}

// CheckKey tests a key with one request. checked is false if the answer says nothing about the key.
func (p Provider) CheckKey(ctx context.Context, key string) (checked bool, err error) {
	address := cmp.Or(p.BaseURL, openAI)
	response, _, err := Fetch(ctx, address+"/"+p.keyCheckPath, key, nil)
	if err != nil {
		return false, fmt.Errorf("%s does not answer: %w", address, err)
	}
	status := response.StatusCode
	switch {
	case slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, p.refusalStatus}, status):
		return true, fmt.Errorf("%s refuses the key (status %d)", address, status)
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return false, fmt.Errorf("%s answers with status %d; try again later", address, status)
	}
	return status == http.StatusOK, nil
}

// Fetch requests a page once, within 15 seconds, and reads up to 1 MiB of it. It sends no
// empty key. It follows no redirect, so the key reaches no other server. The error omits the address, which may
// contain a password.
func Fetch(ctx context.Context, address, key string, headers map[string]string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, errors.New(reach.Explain(err))
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, errors.New(reach.Explain(err))
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response, body, nil
}
