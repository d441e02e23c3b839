// Package forge defines a forge: a server with repositories, issues, pull requests and accounts. It
// defines the values and limits of calls, and the kinds of errors. It knows no API: another package
// implements one.
//
// All text from a forge (titles, bodies, comments, names, error messages) comes from strangers. It
// is passed on without interpretation.
package forge

import (
	"context"
	"io"
)

// Forge is a server, used as the account of one token. It is safe for concurrent use.
type Forge interface {
	// Repository returns the handle of repository OWNER/NAME, without a request. If the name is
	// invalid, the calls of the handle fail with Invalid.
	Repository(name string) Repository

	// Survey answers questions about many repositories, in the order of the questions. It sends as
	// few requests as possible.
	Survey(ctx context.Context, questions []Question) ([]Finding, error)
	// Search finds repositories, or issues in them. It omits archived repositories. More than most
	// results, or than MaxFound if the forge limits results, are an Invalid error.
	Search(ctx context.Context, s Search, most int) ([]Hit, error)

	// Viewer returns the account of the token. Installation tokens of Apps, such as those of
	// workflows, have no account: the error is Forbidden.
	Viewer(ctx context.Context) (User, error)
	// ActingAs returns the login that the token acts under, also for an app or workflow.
	ActingAs(ctx context.Context) (string, error)
	// HasWorkflowToken reports whether the token belongs to a workflow. Such a token can neither
	// start nor change workflows.
	HasWorkflowToken(ctx context.Context) (bool, error)
	// LacksScope reports whether the token's scopes are known and do not include scope. Scopes are
	// known after the first call, for classic tokens only.
	LacksScope(scope string) bool
}

// Repository is the handle of one repository. It is safe for concurrent use.
type Repository interface {
	// Name returns OWNER/NAME.
	Name() string
	// DefaultBranch returns the default branch.
	DefaultBranch(ctx context.Context) (string, error)
	// Permission returns an account's permission. The level of an unknown account is none.
	Permission(ctx context.Context, login string) (Permission, error)

	// Branch returns the commit of a branch. It returns nil if the branch does not exist, or the
	// repository has no commits. A repository that the token cannot see looks the same, so call
	// DefaultBranch first.
	Branch(ctx context.Context, branch string) (*Commit, error)
	// HasCommit reports whether a commit exists. It returns false if the token cannot see the
	// repository.
	HasCommit(ctx context.Context, sha string) (bool, error)
	// Compare returns the relation of commit to base.
	Compare(ctx context.Context, base, commit string) (Relation, error)

	// PushRules returns the rules that are known to apply to the token's pushes to a branch. exists
	// says whether the branch exists.
	PushRules(ctx context.Context, branch string, exists bool) ([]PushRule, error)

	// CreateBlob stores the content of a file of up to MaxBlob bytes and returns its id.
	CreateBlob(ctx context.Context, content io.Reader) (string, error)
	// CreateTree stores the tree base with edits and returns its id.
	CreateTree(ctx context.Context, base string, edits []TreeEdit) (string, error)
	// CreateCommit makes a commit in the name of the token's account.
	CreateCommit(ctx context.Context, message, tree, parent string) (*SignedCommit, error)
	// CreateBranch makes a branch. If it exists, the error is Invalid.
	CreateBranch(ctx context.Context, branch, commit string) error

	// Issue reads an issue with its comments. If the issue was transferred, the NotFound error
	// contains its new address.
	Issue(ctx context.Context, number int) (*Issue, error)
	// Comments reads up to MaxComments comments, the oldest first.
	Comments(ctx context.Context, number int) ([]Comment, error)
	// ReviewComments reads up to MaxComments comments on the diff of a pull request, the oldest
	// first.
	ReviewComments(ctx context.Context, number int) ([]ReviewComment, error)
	// PullRequestFiles reads the files that a pull request changes, up to MaxPullFiles.
	PullRequestFiles(ctx context.Context, number int) ([]PullFile, error)
	// Reviews reads up to MaxComments reviews of a pull request, the oldest first.
	Reviews(ctx context.Context, number int) ([]Comment, error)
	// CreateReview creates a review. It is created only once even if the call is retried: the Body
	// identifies it. If a line is not in the diff, the error is Invalid and nothing is created.
	CreateReview(ctx context.Context, number int, review NewReview) (*Comment, error)
	// Attachment downloads an image that a text links to, up to MaxAttachment bytes. It only
	// contacts the forge's own hosts, because strangers write the addresses. Its errors do not
	// contain the address.
	Attachment(ctx context.Context, address string) ([]byte, error)

	CreateComment(ctx context.Context, number int, body string) (*Comment, error)
	EditComment(ctx context.Context, id int64, body string) error
	// DeleteComment deletes a comment if it exists.
	DeleteComment(ctx context.Context, id int64) error

	PullRequest(ctx context.Context, number int) (*PullRequest, error)
	// FindPullRequest returns the best pull request from branch head: an open one into base, else an
	// open one into another base, else the newest one into base, else nil. If base is "", any base
	// fits.
	FindPullRequest(ctx context.Context, head, base string) (*PullRequest, error)
	// CreatePullRequest creates a pull request. It is created only once even if the call is retried.
	// The error may wrap ErrPullRequestExists or ErrNoDrafts.
	CreatePullRequest(ctx context.Context, pull NewPullRequest) (*PullRequest, error)
	UpdatePullRequest(ctx context.Context, number int, update PullRequestUpdate) (*PullRequest, error)
	// SetDraft makes a pull request a draft, or marks it as ready for review. It does nothing if
	// pull.Draft already equals draft, and updates pull.Draft otherwise.
	SetDraft(ctx context.Context, pull *PullRequest, draft bool) error

	// AddLabels adds labels to an issue or pull request.
	AddLabels(ctx context.Context, number int, labels []string) error
	// AddAssignees assigns accounts. If some cannot be assigned, the others are, and the error is
	// Invalid.
	AddAssignees(ctx context.Context, number int, logins []string) error
	// RequestReviewers asks accounts and teams (slugs) of the owner's organisation
	// for a review.
	RequestReviewers(ctx context.Context, number int, users, teams []string) error
	// Checks reads the check runs and statuses of a commit, up to MaxChecks.
	Checks(ctx context.Context, sha string) ([]Check, error)
	WorkflowRun(ctx context.Context, id int64) (*WorkflowRun, error)
	// WorkflowJobs reads the jobs of a workflow run, each in its newest attempt, up to MaxChecks.
	WorkflowJobs(ctx context.Context, runID int64) ([]Job, error)
	// JobLog opens the log of a job. It may have any length. If the log is expired or not available
	// yet, the error is NotFound.
	JobLog(ctx context.Context, jobID int64) (io.ReadCloser, error)
	// RerunFailedJobs runs the failed jobs of a workflow run again, and the jobs that depend on them.
	// Without the permission the error is Forbidden.
	RerunFailedJobs(ctx context.Context, runID int64) error
	// PullRequestsWith returns the open pull requests whose head is a commit.
	PullRequestsWith(ctx context.Context, sha string) ([]*PullRequest, error)
	// PushedBy returns the account that moved a branch to a commit, whoever wrote the commit. It
	// returns the zero User if the account is unknown.
	PushedBy(ctx context.Context, branch, sha string) (User, error)
}

type User struct {
	Login string
	ID    int64
	Bot   bool
}

// Permission is an account's permission in a repository.
type Permission struct {
	// Level is admin, write, read or none. On a public repository, everybody has read.
	Level string
	// Role is more precise: admin, maintain, write, triage, read, or an organisation's own role.
	Role string
}
