package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is why a call failed.
type Kind string

const (
	NotFound     Kind = "not_found"
	Unauthorized Kind = "bad_token"
	Forbidden    Kind = "forbidden"
	// NotPermitted is a setting of the repository or organisation against pull requests by
	// workflows.
	NotPermitted Kind = "pull_requests_not_permitted"
	RateLimited  Kind = "rate_limited"
	Unavailable  Kind = "unavailable" // a 5xx, or no connection
	Invalid      Kind = "rejected"    // the server, or its package here, takes the request for impossible
	Other        Kind = "failed"
)

// What an Error of kind Invalid may hold besides.
var (
	// ErrPullRequestExists reports an open pull request of the branch.
	ErrPullRequestExists = errors.New("the branch has an open pull request")
	// ErrNoDrafts reports a repository without draft pull requests.
	ErrNoDrafts = errors.New("the repository cannot have draft pull requests")
)

// Error is a failed call. The server's message is one bounded line of printable text.
type Error struct {
	Kind       Kind
	Doing      string // what was being done to what
	Status     int    // 0 when there was no reply
	Method     string
	URL        string // without query
	Message    string // what happened, mostly in the server's words
	Remedy     string // what a person can do
	RetryAfter time.Duration
	Err        error // what was found below; may be nil
}

func (e *Error) Error() string {
	var text strings.Builder
	if e.Doing != "" {
		text.WriteString(e.Doing + ": ")
	}
	text.WriteString(e.Message)
	if e.Method != "" {
		fmt.Fprintf(&text, " (%s %s", e.Method, e.URL)
		if e.Status != 0 {
			fmt.Fprintf(&text, ": %d", e.Status)
		}
		text.WriteString(")")
	}
	if e.Remedy != "" {
		text.WriteString("; " + e.Remedy)
	}
	return text.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of the Error in err; Other when there is none, and "" for
// nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Kind
	}
	return Other
}
