package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Provider is who serves a model, and how it is reached.
type Provider struct {
	Name    string // as it is chosen
	Title   string
	BaseURL string // empty for OpenAI's own
	Wire    string // the value of model.wire; empty for the Responses API
	Secret  string // that holds the key, and the variable that it is read from
	Model   string // that a person is offered; empty where none is known
	// checks is the path below the address that refuses a wrong key, with status 401 or
	// 403 or the one of refuses.
	checks  string
	refuses int
}

const openAI = "https://api.openai.com/v1"

// Providers are those whose addresses are known, and one for any other.
func Providers() []Provider {
	return []Provider{
		{Name: "openai", Title: "OpenAI", Secret: "OPENAI_API_KEY", Model: "gpt-5.1-codex", checks: "models"},
		{Name: "openrouter", Title: "OpenRouter", BaseURL: "https://openrouter.ai/api/v1", Wire: "chat", Secret: "OPENROUTER_API_KEY", checks: "key"},
		{Name: "gemini", Title: "Google Gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", Wire: "chat", Secret: "GEMINI_API_KEY", checks: "models", refuses: http.StatusBadRequest},
		{Name: "deepseek", Title: "DeepSeek", BaseURL: "https://api.deepseek.com/v1", Wire: "chat", Secret: "DEEPSEEK_API_KEY", checks: "models"},
		{Name: "other", Title: "another endpoint that speaks the Responses API or Chat Completions", Secret: "MODEL_API_KEY", checks: "models"},
	}
}

// Lookup is the provider of a name.
func Lookup(name string) (Provider, bool) {
	for _, p := range Providers() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// At is the provider at another address; empty leaves it.
func (p Provider) At(baseURL string) (Provider, error) {
	if baseURL == "" {
		return p, nil
	}
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return p, errors.New("the model's address must be like https://HOST/v1, without user and query")
	}
	p.BaseURL = strings.TrimSuffix(baseURL, "/")
	return p, nil
}

// Check asks the provider once whether it takes a key. checked is false where it does
// not tell.
func (p Provider) Check(ctx context.Context, key string) (checked bool, err error) {
	address := cmp.Or(p.BaseURL, openAI)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/"+p.checks, nil)
	if err != nil {
		return false, fmt.Errorf("ask %s: the address is none", address)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if failed, is := errors.AsType[*url.Error](err); is {
			err = failed.Err
		}
		return false, fmt.Errorf("%s does not answer: %w", address, err)
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == p.refuses:
		return true, fmt.Errorf("%s refuses the key (status %d)", address, status)
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return false, fmt.Errorf("%s answers with status %d; try again later", address, status)
	}
	return response.StatusCode == http.StatusOK, nil
}
