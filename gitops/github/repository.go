package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Repository is what is known of a repository.
type Repository struct {
	DefaultBranch string
	HTMLURL       string
	CloneURL      string // https
	Private       bool
	Archived      bool // read-only: nothing can be pushed
	Fork          bool
}

// Repository reads a repository.
func (c *Client) Repository(ctx context.Context, owner, name string) (*Repository, error) {
	what := call{doing: fmt.Sprintf("read the repository %s/%s", owner, name), permission: "contents: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	repository, _, err := c.rest.Repositories.Get(ctx, owner, name)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return &Repository{
		DefaultBranch: repository.GetDefaultBranch(),
		HTMLURL:       repository.GetHTMLURL(),
		CloneURL:      repository.GetCloneURL(),
		Private:       repository.GetPrivate(),
		Archived:      repository.GetArchived(),
		Fork:          repository.GetFork(),
	}, nil
}

// Branch reads the commit that a branch points to; nil when the repository has
// no such branch, or none at all. A repository that the token cannot see looks
// the same: ask for the Repository first.
func (c *Client) Branch(ctx context.Context, owner, name, branch string) (*forge.Commit, error) {
	what := call{doing: fmt.Sprintf("read the branch %s of %s/%s", branch, owner, name), permission: "contents: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	if err := checkBranch(what, branch); err != nil {
		return nil, err
	}
	ref, _, err := c.rest.Git.GetRef(ctx, owner, name, "heads/"+branch)
	if noSuchRef(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	commit, _, err := c.rest.Git.GetCommit(ctx, owner, name, ref.GetObject().GetSHA())
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return commitFrom(commit), nil
}

// HasCommit says whether a repository has a commit. One that the token cannot
// see looks like one without it.
func (c *Client) HasCommit(ctx context.Context, owner, name, sha string) (bool, error) {
	what := call{doing: fmt.Sprintf("look for the commit %s in %s/%s", sha, owner, name), permission: "contents: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return false, err
	}
	_, _, err := c.rest.Git.GetCommit(ctx, owner, name, sha)
	if noSuchRef(err) {
		return false, nil
	}
	if err != nil {
		return false, c.failed(ctx, what, err)
	}
	return true, nil
}

// noSuchRef: 404 for a missing ref, 409 in a repository without any commit.
func noSuchRef(err error) bool {
	var reply *gh.ErrorResponse
	if !errors.As(err, &reply) {
		return false
	}
	status := reply.Response.StatusCode
	return status == http.StatusNotFound || status == http.StatusConflict
}

func commitFrom(commit *gh.Commit) *forge.Commit {
	parents := make([]string, 0, len(commit.Parents))
	for _, parent := range commit.Parents {
		parents = append(parents, parent.GetSHA())
	}
	return &forge.Commit{
		SHA:     commit.GetSHA(),
		Tree:    commit.GetTree().GetSHA(),
		Parents: parents,
		Message: commit.GetMessage(),
		Author:  fmt.Sprintf("%s <%s>", commit.GetAuthor().GetName(), commit.GetAuthor().GetEmail()),
	}
}

var (
	ownerPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$`) })
	namePattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`) })
)

// checkRepository keeps names that would make another path of the URL from
// being sent.
func checkRepository(what call, owner, name string) error {
	if ownerPattern().MatchString(owner) && namePattern().MatchString(name) && name != "." && name != ".." {
		return nil
	}
	return &forge.Error{
		Kind: forge.Invalid, Doing: what.doing, Message: fmt.Sprintf("%.100q is not the name of a repository", owner+"/"+name),
		Remedy: "write it as owner/name",
	}
}

func checkBranch(what call, branch string) error {
	impossible := func(part string) bool { return part == "" || part == "." || part == ".." }
	if !slices.ContainsFunc(strings.Split(branch, "/"), impossible) {
		return nil
	}
	return &forge.Error{
		Kind: forge.Invalid, Doing: what.doing, Message: fmt.Sprintf("%.100q is not the name of a branch", branch),
		Remedy: "write it without refs/heads/ and without empty parts",
	}
}
