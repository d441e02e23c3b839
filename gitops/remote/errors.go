package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/policy/clip"
)

// These are the reasons why a remote is unusable, for errors.Is. The errors that wrap them say what
// to do.
var (
	ErrAuth        = errors.New("access was refused")
	ErrForbidden   = errors.New("permission was refused") // for a known account
	ErrNotFound    = errors.New("not found")
	ErrUnreachable = errors.New("the server cannot be reached")
	ErrEmpty       = errors.New("the repository has no commit yet")
	errNoBranch    = fmt.Errorf("%w", ErrNotFound) // in a repository that is there
)

// LeaseError reports that a branch of the remote was not at the expected commit. Nothing was
// pushed.
type LeaseError struct {
	Branch   string
	Expected string // "" if the branch was not expected to exist
	Found    string // "" if the branch does not exist
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("the branch %s was expected to %s but it %s: somebody else moved it; look at it, then run again",
		e.Branch, describeCommit(e.Expected, "not exist", "be at "), describeCommit(e.Found, "does not exist", "is at "))
}

// describeCommit returns a commit after a prefix, or noCommit if sha is "".
func describeCommit(sha, noCommit, prefix string) string {
	if sha == "" {
		return noCommit
	}
	return prefix + sha
}

// RejectedError reports a push that the remote refused. Reason is the remote's text, cut and with
// printable characters only.
type RejectedError struct {
	Branch string
	Reason string
	Remedy string // what to do, if the reason is a known one
}

func (e *RejectedError) Error() string {
	text := fmt.Sprintf("the remote rejected the push of %s: %s", e.Branch, e.Reason)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

const pushBaseFirst = "the remote does not have the commit that the change is based on: push the base branch first, then run again"

// remedies maps messages of git and GitHub to advice. The first match counts.
var remedies = []struct{ words, remedy string }{
	{"missing necessary objects", pushBaseFirst},
	{"did not receive expected object", pushBaseFirst},
	{"unresolved delta", pushBaseFirst},
	{"shallow update not allowed", pushBaseFirst},
	{"workflow", "give the token the permission workflows: write, or keep the change out of .github/workflows"},
	{"protected branch", "let the token's account push to branches of this name, or choose another name"},
	{"rule violations", "let the token's account push to branches of this name, or change what the rule names"},
	{"cannot lock ref", "a branch of the remote is in the way, as a is of a/b: give another name as pull_request.branch, or delete it"},
	{"directory file conflict", "a branch of the remote is in the way, as a is of a/b: give another name as pull_request.branch, or delete it"},
	{"checked out", "push to a bare repository, or check out another branch there"},
	{"non-fast-forward", "allow forced pushes of this branch (receive.denyNonFastForwards), or delete it"},
	{"hook declined", "a hook of the remote decided so: do what it says"},
}

// newRejectedError returns the error for a push. status is git's reason, remoteText the text of the
// remote.
func newRejectedError(branch, status, remoteText string) *RejectedError {
	reason := status
	if remoteText != "" {
		reason = status + " (" + remoteText + ")"
	}
	return &RejectedError{Branch: branch, Reason: reason, Remedy: remedyFor(reason)}
}

// remedyFor returns the advice for the reason of a rejected push, or "".
func remedyFor(reason string) string {
	reason = strings.ToLower(reason)
	for _, known := range remedies {
		if strings.Contains(reason, known.words) {
			return known.remedy
		}
	}
	return ""
}

// remoteError is an error of an exchange with a remote, with advice.
type remoteError struct {
	doing  string
	kind   error // one of the sentinels, or nil
	detail string
	remedy string
	cause  error
}

func (e *remoteError) Error() string {
	text := e.doing
	if e.kind != nil {
		text += ": " + e.kind.Error()
	}
	if e.detail != "" {
		text += ": " + e.detail
	}
	if e.remedy != "" {
		text += "; " + e.remedy
	}
	return text
}

func (e *remoteError) Unwrap() error { return errors.Join(e.kind, e.cause) }

var remedyByKind = map[error]string{
	ErrAuth:        "set GITHUB_TOKEN to a token that may read the repository, and write its contents for a push",
	ErrForbidden:   "give the token the permission contents: write, in a workflow under permissions (contents: read is enough to clone); nobody can push to a repository that is archived or disabled",
	ErrNotFound:    "check the URL, and that the token or key may see it: a private repository is not found without",
	errNoBranch:    "it may have been renamed or deleted: name a branch that is there as repository.base",
	ErrUnreachable: "check the URL and the network, or try again later",
	ErrEmpty:       "push a first commit, it may be empty",
}

// connectionRemedies has the remedies for an ErrUnreachable whose message has certain words.
var connectionRemedies = []struct{ words, remedy string }{
	{"certificate", "name a file with the server's authority in SSL_CERT_FILE"},
	{"CONNECT", "check HTTPS_PROXY, and the user and password in it (http://USER:PASSWORD@HOST:PORT)"},
}

// describeError returns the error of an exchange with a remote, with its kind and what to do. A nil error
// stays nil. After the end of ctx it wraps the cause of ctx.
func (r Remote) describeError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	doing = fmt.Sprintf("%s %s", doing, r.Name())
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	kind, detail := errorKind(err), r.safeDetail(err)
	if kind != nil {
		detail = strings.TrimPrefix(strings.TrimPrefix(detail, kind.Error()), ": ")
	}
	remedy := remedyByKind[kind]
	for _, known := range connectionRemedies {
		if kind == ErrUnreachable && strings.Contains(detail, known.words) {
			remedy = known.remedy
		}
	}
	return &remoteError{doing: doing, kind: kind, detail: detail, remedy: remedy, cause: err}
}

// minSecret is the length of the shortest password that safeDetail removes from a message. A shorter one could
// be part of ordinary words.
const minSecret = 6

// safeDetail returns the text of an error as one line, without secrets.
func (r Remote) safeDetail(err error) string {
	text := printable(err.Error())
	for _, secret := range []string{r.Token, passwordIn(r.URL)} {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// passwordIn returns the password in a URL, or "".
func passwordIn(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// gitError reports a failed git program.
type gitError struct {
	stderr *gitStderr
	err    error
}

func (e *gitError) Error() string {
	if stderr := e.stderr.String(); stderr != "" {
		return stderr
	}
	return "git: " + e.err.Error()
}

func (e *gitError) Unwrap() error { return e.err }

// gitErrorKinds maps git's own messages to kinds of errors. The first match counts. Messages of the
// remote are not searched.
var gitErrorKinds = []struct {
	words string
	kind  error
}{
	{"could not read username", ErrAuth},
	{"could not read password", ErrAuth},
	{"authentication failed", ErrAuth},
	{"permission denied", ErrAuth},
	{"returned error: 401", ErrAuth},
	{"returned error: 403", ErrForbidden},
	{"does not appear to be a git repository", ErrNotFound},
	{"' not found", ErrNotFound},
	{"does not exist", ErrNotFound},
	{"remote branch", errNoBranch},
	{"returned error: 404", ErrNotFound},
	{"returned error: 410", ErrNotFound},
	{"returned error: 429", ErrUnreachable},
	{"returned error: 5", ErrUnreachable},
	{"returned error: ", nil},
	{"unable to access", ErrUnreachable},
	{"rpc failed", ErrUnreachable},
	{"hung up unexpectedly", ErrUnreachable},
	{"early eof", ErrUnreachable},
	{"timed out", ErrUnreachable},
}

// errorKind returns the kind of an error: one of ErrAuth to ErrEmpty, or nil if unknown.
func errorKind(err error) error {
	for _, kind := range []error{ErrAuth, ErrForbidden, errNoBranch, ErrNotFound, ErrUnreachable, ErrEmpty} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if failed, ok := errors.AsType[*gitError](err); ok {
		own := strings.ToLower(failed.stderr.local.String())
		for _, known := range gitErrorKinds {
			if strings.Contains(own, known.words) {
				return known.kind
			}
		}
		return nil
	}
	if !errors.As(err, new(*origin.RedirectError)) && errors.As(err, new(net.Error)) {
		return ErrUnreachable
	}
	return nil
}

// gitStderr is a writer for git's standard error. It separates git's own lines from those that git
// marks as the remote's. It stores the beginning of both.
type gitStderr struct {
	local, remote clip.Head
	line          []byte
}

func newStderr() *gitStderr {
	return &gitStderr{local: clip.Head{Limit: maxTextBytes}, remote: clip.Head{Limit: maxTextBytes}}
}

// Write splits the output into lines. It cuts a line at maxTextBytes bytes.
func (s *gitStderr) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n' || c == '\r':
			s.endLine()
		case len(s.line) < maxTextBytes:
			s.line = append(s.line, c)
		}
	}
	return len(p), nil
}

// endLine handles a complete line.
func (s *gitStderr) endLine() {
	line, to := string(s.line), &s.local
	s.line = s.line[:0]
	if theirs, marked := strings.CutPrefix(line, "remote: "); marked {
		line, to = theirs, &s.remote
	}
	for _, mark := range []string{"fatal: ", "error: "} {
		line = strings.TrimPrefix(line, mark)
	}
	_, _ = to.Write([]byte(line + "\n"))
}

// String returns git's own lines, then the remote's, as one line.
func (s *gitStderr) String() string { return printable(s.local.String() + "\n" + s.remote.String()) }

// wasRedirected reports whether an http server redirected git to another address.
func (s *gitStderr) wasRedirected() bool {
	return strings.Contains(s.local.String(), "returned error: 30")
}

const maxTextBytes = 2 << 10

// printable returns text as one line of at most maxTextBytes bytes, without invisible characters.
func printable(text string) string {
	var kept []string
	for line := range strings.Lines(clip.Visible(text, maxTextBytes)) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}
