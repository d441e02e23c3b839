package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the reason why a call failed.
type Kind string

const (
	NotFound     Kind = "not_found"
	Unauthorized Kind = "bad_token"
	Forbidden    Kind = "forbidden"
	// NotPermitted means that a setting of the repository or organisation forbids workflows to open
	// pull requests.
	NotPermitted Kind = "pull_requests_not_permitted"
	RateLimited  Kind = "rate_limited"
	Unavailable  Kind = "unavailable" // status 5xx, or no connection
	Invalid      Kind = "rejected"    // the server, or the client, considers the request invalid
	Other        Kind = "failed"
)

// ErrPullRequestExists and ErrNoDrafts may be wrapped by an Error of kind Invalid.
var (
	// ErrPullRequestExists means that the branch already has an open pull request.
	ErrPullRequestExists = errors.New("the branch has an open pull request")
	// ErrNoDrafts means that the repository does not support draft pull requests.
	ErrNoDrafts = errors.New("the repository cannot have draft pull requests")
)

// Error describes a failed call. The server's message is one line of printable text of limited
// length.
type Error struct {
	Kind       Kind
	Doing      string // what the call was to do, and on what
	Status     int    // 0 if there was no reply
	Method     string
	URL        string // without query
	Message    string // what happened, mostly the server's message
	Remedy     string // what the user can do
	RetryAfter time.Duration
	Err        error // the cause; may be nil
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

// KindOf returns the kind of the Error in err. It returns Other if err contains none, and "" for
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
