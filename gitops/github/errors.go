package github

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	gh "github.com/google/go-github/v60/github"
)

// Kind is why a call failed.
type Kind string

// The kinds of failure.
const (
	NotFound     Kind = "not_found"
	Unauthorized Kind = "bad_token"
	Forbidden    Kind = "forbidden"
	// NotPermitted is the repository's or organisation's setting that keeps
	// GitHub Actions from creating pull requests.
	NotPermitted Kind = "pull_requests_not_permitted"
	RateLimited  Kind = "rate_limited"
	Unavailable  Kind = "unavailable" // a 5xx, or no connection
	Invalid      Kind = "rejected"    // the server, or this package, takes the request for impossible
	Other        Kind = "failed"
)

// Error is a call that failed. What the server said in it is one bounded line
// of printable text.
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
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return Other
}

// call is one use of the API, as its failure has to describe it.
type call struct {
	doing      string
	permission string // of a fine-grained or Actions token
}

// failed describes why c failed. A cancelled context stays what it is.
func (c *Client) failed(ctx context.Context, what call, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what.doing, ctx.Err())
	}
	e := &Error{Doing: what.doing, Err: err}
	if resp := replyOf(err); resp != nil {
		e.fillFromReply(resp, messageOf(err))
		e.fillFromLimit(err)
	} else {
		e.fillFromTransport(err)
	}
	e.Message = c.printable(e.Message)
	e.Remedy = c.remedy(e, what)
	return e
}

func replyOf(err error) *http.Response {
	var plain *gh.ErrorResponse
	var primary *gh.RateLimitError
	var secondary *gh.AbuseRateLimitError
	var twoFactor *gh.TwoFactorAuthError
	switch {
	case errors.As(err, &plain):
		return plain.Response
	case errors.As(err, &primary):
		return primary.Response
	case errors.As(err, &secondary):
		return secondary.Response
	case errors.As(err, &twoFactor):
		return twoFactor.Response
	}
	return nil
}

// messageOf is the server's message with the reasons it lists.
func messageOf(err error) string {
	var plain *gh.ErrorResponse
	var primary *gh.RateLimitError
	var secondary *gh.AbuseRateLimitError
	switch {
	case errors.As(err, &primary):
		return primary.Message
	case errors.As(err, &secondary):
		return secondary.Message
	case !errors.As(err, &plain):
		return ""
	}
	parts := []string{plain.Message}
	for _, reason := range plain.Errors {
		parts = append(parts, reasonText(reason))
	}
	return strings.Join(parts, "; ")
}

func reasonText(reason gh.Error) string {
	if reason.Message != "" {
		return reason.Message
	}
	return strings.TrimSpace(reason.Resource + " " + reason.Field + " " + reason.Code)
}

func (e *Error) fillFromReply(resp *http.Response, message string) {
	e.Status = resp.StatusCode
	if resp.Request != nil {
		e.Method, e.URL = resp.Request.Method, withoutQuery(resp.Request.URL)
	}
	e.Kind = kindOfReply(resp, message)
	e.Message = message
	if e.Message == "" {
		e.Message = "the server answered " + http.StatusText(resp.StatusCode)
	}
	e.RetryAfter, _ = retryAfter(resp, time.Now())
}

// fillFromLimit is for calls that go-github did not make, since it had seen
// the limit spent: they have no reply that says until when.
func (e *Error) fillFromLimit(err error) {
	var limit *gh.RateLimitError
	if errors.As(err, &limit) && !limit.Rate.Reset.IsZero() {
		e.RetryAfter = max(time.Until(limit.Rate.Reset.Time), 0)
	}
}

var kindByStatus = map[int]Kind{
	http.StatusUnauthorized:               Unauthorized,
	http.StatusForbidden:                  Forbidden,
	http.StatusNotFound:                   NotFound,
	http.StatusGone:                       NotFound,
	http.StatusConflict:                   Invalid,
	http.StatusBadRequest:                 Invalid,
	http.StatusUnprocessableEntity:        Invalid,
	http.StatusTooManyRequests:            RateLimited,
	http.StatusUnavailableForLegalReasons: Forbidden,
}

func kindOfReply(resp *http.Response, message string) Kind {
	switch {
	case pullRequestsNotPermitted(message):
		return NotPermitted
	case rateLimited(resp), resp.StatusCode == http.StatusForbidden && strings.Contains(strings.ToLower(message), "rate limit"):
		return RateLimited
	case resp.StatusCode >= http.StatusInternalServerError:
		return Unavailable
	}
	if kind, known := kindByStatus[resp.StatusCode]; known {
		return kind
	}
	return Other
}

func pullRequestsNotPermitted(message string) bool {
	return strings.Contains(message, "not permitted to create or approve pull requests")
}

// fillFromTransport describes a failure without a usable reply.
func (e *Error) fillFromTransport(err error) {
	var sent *url.Error
	if errors.As(err, &sent) {
		e.Method = strings.ToUpper(sent.Op)
		if u, parseErr := url.Parse(sent.URL); parseErr == nil {
			e.URL = withoutQuery(u)
		}
		err = sent.Err
	}
	var redirect *redirectError
	switch {
	case errors.As(err, &redirect), errors.Is(err, errReplyTooLarge):
		e.Kind, e.Message = Other, err.Error()
	case e.Method != "":
		e.Kind, e.Message = Unavailable, "no connection: "+err.Error()
	default:
		e.Kind, e.Message = Other, "the reply is not the JSON of a GitHub API: "+err.Error()
	}
}

func certificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &hostname)
}

const checkAPIURL = "check the API URL (https://HOST/api/v3 for GitHub Enterprise Server)"

func (c *Client) remedy(e *Error, what call) string {
	switch e.Kind {
	case Unauthorized:
		return "set GITHUB_TOKEN to a token that is valid for this server"
	case Forbidden:
		return "give the token the permission " + what.permission + " for this repository"
	case NotFound:
		return "check the name, and that the token may see it (a private repository is not found without " + what.permission + ")"
	case NotPermitted:
		return "allow it in the repository's (or organisation's) Settings, Actions, General, " +
			`"Allow GitHub Actions to create and approve pull requests", or use the token of an app or a person`
	case RateLimited:
		return c.rateLimitRemedy(e.RetryAfter)
	case Unavailable:
		if certificateError(e.Err) {
			return "add the server's certificate authority to this machine's store"
		}
		return "try again later, and check the network and the API URL if it stays so"
	case Invalid:
		return "correct what the message names"
	}
	return checkAPIURL
}

func (c *Client) rateLimitRemedy(after time.Duration) string {
	remedy := "try again later"
	if after > 0 {
		remedy = "try again in " + after.Round(time.Second).String()
	}
	if c.token == "" {
		remedy += ", or set GITHUB_TOKEN: without it 60 requests an hour are allowed"
	}
	return remedy
}

const maxMessage = 500

// printable makes one bounded line of what a server said and takes the token
// out, should the server have repeated it.
func (c *Client) printable(text string) string {
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "***")
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return text
}

func withoutQuery(u *url.URL) string {
	bare := *u
	bare.User, bare.RawQuery, bare.Fragment = nil, "", ""
	return bare.String()
}
