// Package forge says what a forge is: the server that has repositories with
// their issues, pull requests and accounts. It owns the values that calls give
// and take, the bounds of what is read and stored, and why a call failed. It
// knows no server's API: a package beside it speaks to one.
//
// Everything that comes from a forge (titles, bodies, comments, names, error
// messages) was written by strangers and is handed on as text without any
// meaning.
package forge

import (
	"context"
	"io"
)

// Forge is a server, asked as the account of one token. It may be used from
// several goroutines.
type Forge interface {
	// Repository gives the handle of the repository OWNER/NAME. It asks nothing:
	// each call of a handle whose name cannot be one fails with the kind Invalid.
	Repository(name string) Repository

	// Survey answers questions on many repositories, in their order, in as few requests as it can.
	Survey(ctx context.Context, questions []Question) ([]Finding, error)
	// Search finds repositories or issues, without archived repositories, at most so many: more of
	// them are an error of the kind Invalid, as they are where the forge gives no more than MaxFound.
	Search(ctx context.Context, s Search, most int) ([]Hit, error)

	// Viewer is the account that the token belongs to. The token of an app's
	// installation, as workflows have one, belongs to nobody: the error has the
	// kind Forbidden.
	Viewer(ctx context.Context) (User, error)
	// ActingAs is the login that the token acts under: also that of an app or of a
	// workflow, which Viewer does not tell.
	ActingAs(ctx context.Context) (string, error)
	// HasWorkflowToken says whether the token is the one that a workflow is given,
	// which may start no workflow and change none.
	HasWorkflowToken(ctx context.Context) (bool, error)
	// LacksScope says that the token is known to have scopes, and not this one. It
	// is known after the first call.
	LacksScope(scope string) bool
}

// Repository is the handle of one repository. It may be used from several
// goroutines.
type Repository interface {
	// Name is OWNER/NAME.
	Name() string
	// DefaultBranch is the branch that a clone stands on.
	DefaultBranch(ctx context.Context) (string, error)
	// Permission asks what an account may do. An account that is not there has the
	// level none.
	Permission(ctx context.Context, login string) (Permission, error)

	// Branch reads the commit that a branch points to; nil when there is no such
	// branch, or none at all. A repository that the token cannot see looks the
	// same: ask for the DefaultBranch first.
	Branch(ctx context.Context, branch string) (*Commit, error)
	// HasCommit says whether there is a commit. A repository that the token cannot
	// see looks like one without it.
	HasCommit(ctx context.Context, sha string) (bool, error)
	// Compare says how commit stands to base.
	Compare(ctx context.Context, base, commit string) (Relation, error)

	// PushRules returns the rules on pushes to a branch that bind the account of the token, as far as the server
	// tells. exists says whether the branch is there.
	PushRules(ctx context.Context, branch string, exists bool) ([]PushRule, error)

	// CreateBlob stores the content of a file, at most MaxBlob, and gives its id.
	CreateBlob(ctx context.Context, content io.Reader) (string, error)
	// CreateTree stores the tree that edits make of the tree base and gives its id.
	CreateTree(ctx context.Context, base string, edits []TreeEdit) (string, error)
	// CreateCommit makes a commit in the name of the token's account.
	CreateCommit(ctx context.Context, message, tree, parent string) (*SignedCommit, error)
	// CreateBranch makes a branch that is not there; one that is there is an error
	// of kind Invalid.
	CreateBranch(ctx context.Context, branch, commit string) error

	// Issue reads an issue and its comments. An issue that was moved to another
	// repository is not found; the error says where it is.
	Issue(ctx context.Context, number int) (*Issue, error)
	// Comments reads the comments, oldest first, at most MaxComments.
	Comments(ctx context.Context, number int) ([]Comment, error)
	// ReviewComments reads the comments on the diff of a pull request, oldest
	// first, at most MaxComments.
	ReviewComments(ctx context.Context, number int) ([]ReviewComment, error)
	// PullRequestFiles reads what a pull request changes, at most MaxPullFiles files.
	PullRequestFiles(ctx context.Context, number int) ([]PullFile, error)
	// Reviews reads the reviews of a pull request, oldest first, at most MaxComments.
	Reviews(ctx context.Context, number int) ([]Review, error)
	// CreateReview creates one review, also where an attempt has to be repeated: its
	// Body tells it from all others. A line that is not in the diff is an error of kind
	// Invalid, and nothing is created then.
	CreateReview(ctx context.Context, number int, review NewReview) (*Review, error)
	// Attachment fetches the image at an address that stands in a text, at most
	// MaxAttachment bytes. Only the forge's own places are asked: the address is a
	// stranger's word. The error says why not, without the address.
	Attachment(ctx context.Context, address string) ([]byte, error)

	CreateComment(ctx context.Context, number int, body string) (*Comment, error)
	EditComment(ctx context.Context, id int64, body string) error
	// DeleteComment deletes a comment. That it is gone already is no error.
	DeleteComment(ctx context.Context, id int64) error

	PullRequest(ctx context.Context, number int) (*PullRequest, error)
	// FindPullRequest is the pull request from the branch head of the repository
	// into base ("" for any): the open one, else an open one into another base,
	// which somebody may have given it, else the newest into base; nil when there
	// is none.
	FindPullRequest(ctx context.Context, head, base string) (*PullRequest, error)
	// CreatePullRequest creates one pull request, also where an attempt has to be
	// repeated. The error may be ErrPullRequestExists or ErrNoDrafts.
	CreatePullRequest(ctx context.Context, pull NewPullRequest) (*PullRequest, error)
	UpdatePullRequest(ctx context.Context, number int, update PullRequestUpdate) (*PullRequest, error)
	// SetDraft makes a pull request a draft or ready for review, and notes it in
	// pull. It does nothing when pull says that it is so already.
	SetDraft(ctx context.Context, pull *PullRequest, draft bool) error

	// AddLabels adds labels to an issue or pull request.
	AddLabels(ctx context.Context, number int, labels []string) error
	// AddAssignees assigns accounts. That some could not be assigned is an error of
	// kind Invalid, after the others were.
	AddAssignees(ctx context.Context, number int, logins []string) error
	// RequestReviewers asks accounts and teams (slugs) of the owner's organisation
	// for a review.
	RequestReviewers(ctx context.Context, number int, users, teams []string) error
	// Checks reads what checks and statuses say of a commit, at most MaxChecks.
	Checks(ctx context.Context, sha string) ([]Check, error)
	WorkflowRun(ctx context.Context, id int64) (*WorkflowRun, error)
	// WorkflowJobs reads the jobs of a run of a workflow, each in its newest attempt, at
	// most MaxChecks.
	WorkflowJobs(ctx context.Context, runID int64) ([]Job, error)
	// JobLog opens the log of a job, which may be of any length. A log that is not kept
	// any more, or not there yet, is an error of kind NotFound.
	JobLog(ctx context.Context, jobID int64) (io.ReadCloser, error)
	// RerunFailedJobs has the failed jobs of a run, and those that depend on them, run
	// again. A token that may not gives the kind Forbidden.
	RerunFailedJobs(ctx context.Context, runID int64) error
	// PullRequestsWith are the open pull requests whose head is a commit.
	PullRequestsWith(ctx context.Context, sha string) ([]*PullRequest, error)
	// CommitAccounts are whose a commit is.
	CommitAccounts(ctx context.Context, sha string) (CommitAccounts, error)
	// PushedBy is who made a branch point to a commit, which is nothing that a commit
	// could say; nobody where the server does not tell.
	PushedBy(ctx context.Context, branch, sha string) (User, error)
}

type User struct {
	Login string
	ID    int64
	Bot   bool
}

// Permission is what an account may do in a repository.
type Permission struct {
	// Level is admin, write, read or none. On a public repository everybody has
	// read.
	Level string
	// Role is finer: admin, maintain, write, triage, read, or the name of a role
	// that the organisation made.
	Role string
}
