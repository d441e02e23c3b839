package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// apiCall describes a call of the API, for its error.
type apiCall struct {
	action     string
	permission string   // permission that a fine-grained or Actions token needs
	objects    []string // object ids in the call
	ref        string   // heads/BRANCH in the call, or ""
}

const headsPrefix = "heads/"

// callError returns the error for a failed call. After the end of ctx it wraps the error of ctx instead.
func (c *Client) callError(ctx context.Context, call apiCall, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", call.action, ctx.Err())
	}
	e := &forge.Error{Doing: call.action, Err: err}
	if resp, message := replyOf(err); resp != nil {
		fillFromReply(e, resp, message)
		fillFromLimit(e, err)
	} else {
		fillFromTransport(e, err)
	}
	e.Message = c.printable(e.Message)
	wrapKnownRefusal(e)
	e.Remedy = c.remedy(e, call)
	return e
}

// replyOf returns the response in an error, and its message with all reasons, or "" if the response has none. It
// returns nil for an error without a response.
func replyOf(err error) (*http.Response, string) {
	if plain, ok := errors.AsType[*gh.ErrorResponse](err); ok {
		parts := []string{plain.Message}
		for _, reason := range plain.Errors {
			parts = append(parts, cmp.Or(reason.Message, strings.TrimSpace(reason.Resource+" "+reason.Field+" "+reason.Code)))
		}
		return plain.Response, strings.Join(parts, "; ")
	}
	if primary, ok := errors.AsType[*gh.RateLimitError](err); ok {
		return primary.Response, primary.Message
	}
	if secondary, ok := errors.AsType[*gh.AbuseRateLimitError](err); ok {
		return secondary.Response, secondary.Message
	}
	if twoFactor, ok := errors.AsType[*gh.TwoFactorAuthError](err); ok {
		return twoFactor.Response, ""
	}
	return nil, ""
}

// fillFromReply describes a failure by the reply. message is the message in the reply.
func fillFromReply(e *forge.Error, resp *http.Response, message string) {
	e.Status = resp.StatusCode
	if resp.Request != nil {
		e.Method, e.URL = resp.Request.Method, withoutQuery(resp.Request.URL)
	}
	e.Kind = kindOfReply(resp, message)
	e.Message = cmp.Or(message, "the server answered "+http.StatusText(resp.StatusCode))
	e.RetryAfter, _ = transport.RetryAfter(resp, time.Now())
}

// fillFromLimit adds the time until a rate limit resets. After a spent limit, go-github fails calls
// itself, without a response.
func fillFromLimit(e *forge.Error, err error) {
	if limit, ok := errors.AsType[*gh.RateLimitError](err); ok && !limit.Rate.Reset.IsZero() {
		e.RetryAfter = max(time.Until(limit.Rate.Reset.Time), 0)
	}
}

var kindByStatus = map[int]forge.Kind{
	http.StatusUnauthorized:               forge.Unauthorized,
	http.StatusForbidden:                  forge.Forbidden,
	http.StatusNotFound:                   forge.NotFound,
	http.StatusGone:                       forge.NotFound,
	http.StatusConflict:                   forge.Invalid,
	http.StatusBadRequest:                 forge.Invalid,
	http.StatusUnprocessableEntity:        forge.Invalid,
	http.StatusTooManyRequests:            forge.RateLimited,
	http.StatusUnavailableForLegalReasons: forge.Forbidden,
}

// kindOfReply returns the kind of error that a reply means. message is the message in the reply.
func kindOfReply(resp *http.Response, message string) forge.Kind {
	switch {
	case pullRequestsNotPermitted(message):
		return forge.NotPermitted
	case transport.RateLimited(resp), resp.StatusCode == http.StatusForbidden && namesRateLimit(message):
		return forge.RateLimited
	case resp.StatusCode >= http.StatusInternalServerError:
		return forge.Unavailable
	}
	return cmp.Or(kindByStatus[resp.StatusCode], forge.Other)
}

// refusals maps messages of GitHub to errors of package forge.
var refusals = map[string]error{
	"A pull request already exists for":     forge.ErrPullRequestExists,
	"Draft pull requests are not supported": forge.ErrNoDrafts, // in private repositories of some plans
}

// wrapKnownRefusal wraps the error of package forge that fits the message, if there is one.
func wrapKnownRefusal(e *forge.Error) {
	for words, refusal := range refusals {
		if e.Kind == forge.Invalid && strings.Contains(e.Message, words) {
			e.Err = errors.Join(refusal, e.Err)
		}
	}
}

// pullRequestsNotPermitted reports whether a message says that workflows may not open pull requests.
func pullRequestsNotPermitted(message string) bool {
	return strings.Contains(message, "not permitted to create or approve pull requests")
}

// namesRateLimit reports whether a message is about a rate limit.
func namesRateLimit(message string) bool {
	return strings.Contains(strings.ToLower(message), "rate limit")
}

// fillFromTransport describes a failure without a reply, or with a reply that is too large or no
// JSON.
func fillFromTransport(e *forge.Error, err error) {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		e.Method = strings.ToUpper(failed.Op)
		if u, parseErr := url.Parse(failed.URL); parseErr == nil {
			e.URL = withoutQuery(u)
		}
		err = failed.Err
	}
	switch {
	case errors.As(err, new(*origin.RedirectError)):
		e.Kind, e.Message = forge.Other, err.Error()
	case errors.As(err, new(*http.MaxBytesError)):
		e.Kind, e.Message = forge.Other, fmt.Sprintf("the reply is larger than %d MiB", maxReply>>20)
	case errors.As(err, new(*transport.BrokenReplyError)):
		e.Kind, e.Message = forge.Unavailable, err.Error()
	case e.Method != "":
		e.Kind, e.Message = forge.Unavailable, "no connection: "+reach.Explain(err)
	default:
		e.Kind, e.Message = forge.Other, "the reply is not the JSON of a GitHub API: "+plainjson.Explain(err).Error()
	}
}

// forbiddenRemedies maps messages of status 403 to advice. No permission of the token helps.
var forbiddenRemedies = []struct{ words, remedy string }{
	{"archived", "unarchive the repository, or leave it out"},
	{"is locked", "unlock the conversation"},
	{"SAML enforcement", "authorize the token for the organisation's single sign-on"},
	{"IP allow list", "add the address of this machine to the organisation's IP allow list"},
	{"access blocked", "see the repository's page on the forge"},
}

// remedy returns what the user can do about an error, or "" if the error's message says it already.
func (c *Client) remedy(e *forge.Error, call apiCall) string {
	switch e.Kind {
	case forge.Unauthorized:
		return "set GITHUB_TOKEN to a token that is valid for this server"
	case forge.Forbidden:
		for _, known := range forbiddenRemedies {
			if strings.Contains(e.Message, known.words) {
				return known.remedy
			}
		}
		return "give the token the permission " + call.permission + " for this repository"
	case forge.NotFound:
		if e.Status == http.StatusGone {
			return "name another one"
		}
		return "check the name, and that the token may see it (a private repository is not found without " + call.permission + ")"
	case forge.NotPermitted:
		return "allow it in the repository's (or organisation's) Settings, Actions, General, " +
			`"Allow GitHub Actions to create and approve pull requests", or use the token of an app or a person`
	case forge.RateLimited:
		return c.rateLimitRemedy(e.RetryAfter)
	case forge.Unavailable:
		if transport.IsCertificateError(e.Err) {
			return "" // the message says what to do
		}
		return "try again later, and check the network and the API URL if it stays so"
	case forge.Invalid:
		return "correct what the message names"
	}
	return "check the API URL (https://HOST/api/v3 for GitHub Enterprise Server)"
}

// rateLimitRemedy returns what the user can do about a rate limit. after is the time to wait, or 0
// if unknown.
func (c *Client) rateLimitRemedy(after time.Duration) string {
	remedy := "try again later"
	if after > 0 {
		remedy = "try again in " + clip.Duration(after.Round(time.Second))
	}
	if c.token == "" {
		remedy += ", or set GITHUB_TOKEN: without it 60 requests an hour are allowed"
	}
	return remedy
}

const maxMessage = 500

// printable returns a server's text as one line of up to maxMessage bytes, without the token.
func (c *Client) printable(text string) string {
	text = clip.VisibleLine(text, len(text)) // first, since an invisible character may split the token
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "***")
	}
	return clip.Bytes(text, maxMessage)
}

// withoutQuery returns a URL without user, query and fragment.
func withoutQuery(u *url.URL) string {
	bare := *u
	bare.User, bare.RawQuery, bare.Fragment = nil, "", ""
	return bare.String()
}
