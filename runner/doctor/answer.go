package doctor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Answer is what an API said when it was asked whether it is there.
type Answer struct {
	Asked     bool   `json:"asked"` // nothing is asked unless a person wants it
	Reachable bool   `json:"reachable"`
	Status    int    `json:"status,omitempty"`
	Error     string `json:"error,omitempty"`
}

// ask gets a page once, with a limit of time and size; without a key where that is
// empty. The error in the answer is the transport's, without the address.
func ask(ctx context.Context, address, key string, headers map[string]string) (Answer, http.Header, []byte) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	failed := func(err error) (Answer, http.Header, []byte) {
		if failure, is := errors.AsType[*url.Error](err); is { // the address may hold a password
			err = failure.Err
		}
		return Answer{Asked: true, Error: err.Error()}, http.Header{}, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return failed(err)
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
		return failed(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return Answer{Asked: true, Reachable: true, Status: response.StatusCode}, response.Header, body
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
