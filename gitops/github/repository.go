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

// repository makes the client's calls for one repository.
type repository struct {
	*Client
	fullName, owner, name string
	attachments           func() (*attachments, error) // once one is fetched
}

// Repository gives the handle of the repository OWNER/NAME.
func (c *Client) Repository(name string) forge.Repository {
	r := &repository{Client: c, fullName: name}
	r.owner, r.name, _ = strings.Cut(name, "/")
	r.attachments = sync.OnceValues(func() (*attachments, error) {
		return newAttachments(c.serverURL, name, c.token, nil)
	})
	return r
}

func (r *repository) Name() string { return r.fullName }

func (r *repository) DefaultBranch(ctx context.Context) (string, error) {
	what := call{doing: "read the repository " + r.fullName, permission: "contents: read"}
	if err := r.check(what); err != nil {
		return "", err
	}
	found, _, err := r.rest.Repositories.Get(ctx, r.owner, r.name)
	if err != nil {
		return "", r.failed(ctx, what, err)
	}
	return found.GetDefaultBranch(), nil
}

func (r *repository) Branch(ctx context.Context, branch string) (*forge.Commit, error) {
	what := call{doing: fmt.Sprintf("read the branch %s of %s", branch, r.fullName), permission: "contents: read"}
	if err := r.checkBranch(what, branch); err != nil {
		return nil, err
	}
	ref, _, err := r.rest.Git.GetRef(ctx, r.owner, r.name, "heads/"+branch)
	if noSuchRef(err) {
		return nil, nil
	}
	if err != nil {
		return nil, r.failed(ctx, what, err)
	}
	commit, _, err := r.rest.Git.GetCommit(ctx, r.owner, r.name, ref.GetObject().GetSHA())
	if err != nil {
		return nil, r.failed(ctx, what, err)
	}
	return commitFrom(commit), nil
}

func (r *repository) HasCommit(ctx context.Context, sha string) (bool, error) {
	what := call{doing: fmt.Sprintf("look for the commit %s in %s", sha, r.fullName), permission: "contents: read"}
	if err := r.check(what); err != nil {
		return false, err
	}
	_, _, err := r.rest.Git.GetCommit(ctx, r.owner, r.name, sha)
	if noSuchRef(err) {
		return false, nil
	}
	if err != nil {
		return false, r.failed(ctx, what, err)
	}
	return true, nil
}

func (r *repository) Compare(ctx context.Context, base, commit string) (forge.Relation, error) {
	what := call{doing: fmt.Sprintf("compare %.12s with %.12s in %s", commit, base, r.fullName), permission: "contents: read"}
	for _, id := range []string{base, commit} {
		if err := r.checkObject(what, id); err != nil {
			return "", err
		}
	}
	// The first page alone has the files that differ.
	found, _, err := r.rest.Repositories.CompareCommits(ctx, r.owner, r.name, base, commit, &gh.ListOptions{Page: 2, PerPage: 1})
	if err != nil {
		return "", r.failed(ctx, what, err)
	}
	return forge.Relation(found.GetStatus()), nil
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
	objectID     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`) })
	ownerPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$`) })
	namePattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`) })
)

// check keeps names that would make another path of the URL from being sent.
func (r *repository) check(what call) error {
	if ownerPattern().MatchString(r.owner) && namePattern().MatchString(r.name) && r.name != "." && r.name != ".." {
		return nil
	}
	return &forge.Error{
		Kind: forge.Invalid, Doing: what.doing, Message: fmt.Sprintf("%.100q is not the name of a repository", r.fullName),
		Remedy: "write it as owner/name",
	}
}

func (r *repository) checkObject(what call, id string) error {
	if err := r.check(what); err != nil {
		return err
	}
	if !objectID().MatchString(id) {
		return &forge.Error{Kind: forge.Invalid, Doing: what.doing, Message: "that is not the id of an object", Remedy: "give all hex digits of it"}
	}
	return nil
}

func (r *repository) checkBranch(what call, branch string) error {
	if err := r.check(what); err != nil {
		return err
	}
	impossible := func(part string) bool { return part == "" || part == "." || part == ".." }
	if !slices.ContainsFunc(strings.Split(branch, "/"), impossible) {
		return nil
	}
	return &forge.Error{
		Kind: forge.Invalid, Doing: what.doing, Message: fmt.Sprintf("%.100q is not the name of a branch", branch),
		Remedy: "write it without refs/heads/ and without empty parts",
	}
}
