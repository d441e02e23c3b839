package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
)

// maxEventBytes is the maximum length of an event in bytes: GitHub sends no longer webhook
// (https://docs.github.com/webhooks/webhook-events-and-payloads).
const maxEventBytes = 25 << 20

// Event is the event that started a workflow: GITHUB_EVENT_NAME, and fields of the webhook payload
// at GITHUB_EVENT_PATH. Its texts date from the time of the event.
type Event struct {
	Name          string         `json:"-"`
	Action        string         `json:"action"`
	Sender        Account        `json:"sender"`
	Label         *Label         `json:"label"`
	Assignee      *Account       `json:"assignee"`
	Issue         *Issue         `json:"issue"`
	Comment       *Comment       `json:"comment"`
	Review        *Review        `json:"review"`
	PullRequest   *PullRequest   `json:"pull_request"`
	WorkflowRun   *Checks        `json:"workflow_run"`
	CheckSuite    *Checks        `json:"check_suite"`
	Inputs        map[string]any `json:"inputs"`         // of workflow_dispatch
	ClientPayload map[string]any `json:"client_payload"` // of repository_dispatch
}

// Account is who did or wrote something.
type Account struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
	Type  string `json:"type"` // User, Bot, Organization
}

// IsBot reports whether a is the account of an App.
func (a Account) IsBot() bool { return a.Type == "Bot" }

type Label struct {
	Name string `json:"name"`
}

// Issue is an issue, or a pull request seen as one.
type Issue struct {
	Number      int             `json:"number"`
	Title       string          `json:"title"`
	Body        string          `json:"body"`
	UpdatedAt   time.Time       `json:"updated_at"`
	PullRequest json.RawMessage `json:"pull_request"` // there for a pull request only
}

// IsPull reports whether i is a pull request.
func (i *Issue) IsPull() bool {
	return len(i.PullRequest) > 0 && string(i.PullRequest) != "null"
}

// Comment is a comment on an issue or pull request, or on a line of a diff.
type Comment struct {
	ID        int64     `json:"id"`
	Body      string    `json:"body"`
	User      Account   `json:"user"`
	CreatedAt time.Time `json:"created_at"`
	Path      string    `json:"path"`      // of a comment on a diff
	Line      int       `json:"line"`      // likewise; 0 for a deleted line
	DiffHunk  string    `json:"diff_hunk"` // likewise
}

type Review struct {
	ID          int64     `json:"id"`
	Body        string    `json:"body"`
	State       string    `json:"state"` // approved, changes_requested, commented
	User        Account   `json:"user"`
	SubmittedAt time.Time `json:"submitted_at"`
}

type PullRequest struct {
	Number int        `json:"number"`
	Title  string     `json:"title"`
	Body   string     `json:"body"`
	Head   PullBranch `json:"head"`
	Base   PullBranch `json:"base"`
}

// PullBranch is one of the two branches of a pull request.
type PullBranch struct {
	Ref        string      `json:"ref"`
	Repository *Repository `json:"repo"` // nil for a deleted fork
}

// Repository is the repository of a branch.
type Repository struct {
	FullName string `json:"full_name"`
}

// Name returns OWNER/REPO. It is "" for a deleted repository.
func (r *Repository) Name() string {
	if r == nil {
		return ""
	}
	return r.FullName
}

// Checks are the checks in an event: a run of another workflow, possibly for a fork, or the suite of an app.
type Checks struct {
	Name           string      `json:"name"`       // of the workflow
	Conclusion     string      `json:"conclusion"` // success, failure, timed_out, …; "" until they are completed
	HeadSHA        string      `json:"head_sha"`
	HeadRepository *Repository `json:"head_repository"` // of a workflow run
}

// TimeOnIssue returns the time of the event on its issue: the creation of the comment, else the
// issue's last update.
func (e *Event) TimeOnIssue() time.Time {
	if e.Comment != nil {
		return e.Comment.CreatedAt
	}
	return e.Issue.UpdatedAt
}

// ErrNoEvent means that the environment names no event.
var ErrNoEvent = errors.New("there is no event: GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set")

// ReadEvent reads the event. name and path are the values of GITHUB_EVENT_NAME and
// GITHUB_EVENT_PATH.
func ReadEvent(ctx context.Context, name, path string) (*Event, error) {
	if name == "" || path == "" {
		return nil, ErrNoEvent
	}
	raw, err := boundedfile.Read(ctx, path, maxEventBytes)
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	if len(raw) > maxEventBytes {
		return nil, fmt.Errorf("the event is longer than %d bytes", maxEventBytes)
	}
	event := Event{Name: name}
	if err := plainjson.Unmarshal(raw, &event); err != nil {
		return nil, fmt.Errorf("read the event %s: %w", name, err)
	}
	return &event, nil
}
