package github

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

type repository struct {
	*Client
	fullName, owner, name string
	attachments           func() (*attachments, error) // made at the first call
}

func (c *Client) Repository(name string) forge.Repository { return c.repository(name) }

// repository returns the handle of repository OWNER/NAME, without a request.
func (c *Client) repository(name string) *repository {
	r := &repository{Client: c, fullName: name}
	r.owner, r.name, _ = strings.Cut(name, "/")
	r.attachments = sync.OnceValues(func() (*attachments, error) {
		return newAttachments(c.serverURL, name, c.token, transport.New())
	})
	return r
}

func (r *repository) Name() string { return r.fullName }

// DefaultBranch returns the name of the default branch.
func (r *repository) DefaultBranch(ctx context.Context) (string, error) {
	call := apiCall{action: "read the repository " + r.fullName, permission: "contents: read"}
	found, err := request(ctx, r, call, func() (*gh.Repository, *gh.Response, error) { return r.rest.Repositories.Get(ctx, r.owner, r.name) })
	return found.GetDefaultBranch(), err
}

// Branch reads the commit of a branch. It returns nil without an error if there is no such branch.
func (r *repository) Branch(ctx context.Context, branch string) (*forge.Commit, error) {
	call := apiCall{action: fmt.Sprintf("read the branch %s of %s", branch, r.fullName), permission: "contents: read", ref: headsPrefix + branch}
	ref, err := request(ctx, r, call, func() (*gh.Reference, *gh.Response, error) {
		return r.rest.Git.GetRef(ctx, r.owner, r.name, call.ref)
	})
	if isMissingRef(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	commit, err := r.getCommit(ctx, call, ref.GetObject().GetSHA())
	if err != nil {
		return nil, err
	}
	return commitFrom(commit), nil
}

// getCommit reads a commit. call describes the call that needs it.
func (r *repository) getCommit(ctx context.Context, call apiCall, sha string) (*gh.Commit, error) {
	return request(ctx, r, call, func() (*gh.Commit, *gh.Response, error) { return r.rest.Git.GetCommit(ctx, r.owner, r.name, sha) })
}

// HasCommit reports whether a commit exists.
func (r *repository) HasCommit(ctx context.Context, sha string) (bool, error) {
	call := apiCall{action: fmt.Sprintf("look for the commit %s in %s", sha, r.fullName), permission: "contents: read"}
	_, err := r.getCommit(ctx, call, sha)
	if isMissingRef(err) {
		return false, nil
	}
	return err == nil, err
}

// Compare returns the relation of commit to base.
func (r *repository) Compare(ctx context.Context, base, commit string) (forge.Relation, error) {
	call := apiCall{action: fmt.Sprintf("compare %.12s with %.12s in %s", commit, base, r.fullName), permission: "contents: read", objects: []string{base, commit}}
	found, err := request(ctx, r, call, func() (*gh.CommitsComparison, *gh.Response, error) {
		// Only the first page contains the differing files.
		return r.rest.Repositories.CompareCommits(ctx, r.owner, r.name, base, commit, &gh.ListOptions{Page: 2, PerPage: 1})
	})
	return forge.Relation(found.GetStatus()), err
}

// isMissingRef reports whether err means a missing ref: status 404, or 409 in a repository without
// commits.
func isMissingRef(err error) bool {
	reply, ok := errors.AsType[*gh.ErrorResponse](err)
	return ok && slices.Contains([]int{http.StatusNotFound, http.StatusConflict}, reply.Response.StatusCode)
}

// commitFrom converts a commit of go-github.
func commitFrom(commit *gh.Commit) *forge.Commit {
	return &forge.Commit{
		SHA:       commit.GetSHA(),
		Tree:      commit.GetTree().GetSHA(),
		Parents:   namesOf(commit.Parents, (*gh.Commit).GetSHA),
		Message:   commit.GetMessage(),
		Author:    nameAndEmail(commit.GetAuthor()),
		Committer: nameAndEmail(commit.GetCommitter()),
		Authored:  commit.GetAuthor().GetDate().Time,
		Committed: commit.GetCommitter().GetDate().Time,
	}
}

// nameAndEmail returns a person as git writes it: "name <mail>".
func nameAndEmail(a *gh.CommitAuthor) string {
	return fmt.Sprintf("%s <%s>", a.GetName(), a.GetEmail())
}

var (
	objectID     = lazyregexp.New(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`)
	ownerPattern = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$`)
	namePattern  = lazyregexp.New(`^[A-Za-z0-9._-]{1,100}$`)
)

// request sends a call of go-github on a repository and returns the reply.
func request[T any](ctx context.Context, r *repository, call apiCall, send func() (T, *gh.Response, error)) (answer T, err error) {
	err = r.runCall(ctx, call, func() (err error) {
		if answer, _, err = send(); err != nil {
			return err
		}
		return requireIdentified(answer)
	})
	return answer, err
}

var errUnidentified = errors.New("it does not say what it is about")

// requireIdentified returns errUnidentified unless a reply names its object, or has a list.
func requireIdentified(answer any) error {
	if !isIdentified(answer) {
		return errUnidentified
	}
	return nil
}

// isIdentified reports whether a reply names its object, or has a list. go-github accepts an empty reply.
func isIdentified(answer any) bool {
	switch a := answer.(type) {
	case *gh.Repository:
		return a.GetFullName() != ""
	case interface{ GetNumber() int }: // a pull request or issue
		return a.GetNumber() > 0
	case interface{ GetSHA() string }: // a git object
		return a.GetSHA() != ""
	case interface{ GetID() int64 }: // a comment or review
		return a.GetID() > 0
	case *gh.Reference:
		return a.GetObject().GetSHA() != ""
	case *gh.CommitsComparison:
		return a.GetStatus() != ""
	case *gh.DefaultWorkflowPermissionRepository:
		return a != nil
	case []*gh.PullRequest:
		return a != nil
	}
	return true
}

// runCall sends calls on a repository and describes their failure. It sends nothing if a name in call
// would change the path of the URL.
func (r *repository) runCall(ctx context.Context, call apiCall, send func() error) error {
	if err := r.validate(call); err != nil {
		return err
	}
	if err := send(); err != nil {
		return r.callError(ctx, call, err)
	}
	return nil
}

// validate returns an error if a name in a call would change the path of the URL.
func (r *repository) validate(call apiCall) error {
	isImpossible := func(part string) bool { return part == "" || part == "." || part == ".." }
	isNoID := func(id string) bool { return !objectID().MatchString(id) }
	wrong := &forge.Error{Kind: forge.Invalid, Doing: call.action}
	switch {
	case !ownerPattern().MatchString(r.owner) || !namePattern().MatchString(r.name) || isImpossible(r.name):
		wrong.Message, wrong.Remedy = fmt.Sprintf("%.100q is not the name of a repository", r.fullName), "write it as owner/name"
	case slices.ContainsFunc(call.objects, isNoID):
		wrong.Message, wrong.Remedy = "that is not the id of an object", "give all hex digits of it"
	case call.ref != "" && slices.ContainsFunc(strings.Split(call.ref, "/"), isImpossible):
		wrong.Message = fmt.Sprintf("%.100q is not the name of a branch", strings.TrimPrefix(call.ref, headsPrefix))
		wrong.Remedy = "write it without refs/heads/ and without empty parts"
	default:
		return nil
	}
	return wrong
}

// loginPattern matches names of accounts. Those of Apps end in [bot]. Those of enterprises may
// contain "_".
var loginPattern = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?(?:\[bot\])?$`)

// Permission reads an account's permission. An unknown account has the level none.
func (r *repository) Permission(ctx context.Context, login string) (forge.Permission, error) {
	call := apiCall{action: fmt.Sprintf("ask for the permission of %.100q in %s", login, r.fullName), permission: "metadata: read"}
	none := forge.Permission{Level: "none"}
	if err := r.validate(call); err != nil {
		return none, err
	}
	if !loginPattern().MatchString(login) {
		return none, &forge.Error{Kind: forge.Invalid, Doing: call.action, Message: "that is not the name of an account", Remedy: "write the login without @"}
	}
	var reply struct {
		Permission string `json:"permission"`
		RoleName   string `json:"role_name"` // not in go-github v60
	}
	err := r.getJSON(ctx, call, "collaborators/"+login+"/permission", &reply)
	switch {
	case forge.KindOf(err) == forge.NotFound:
		return none, nil
	case err != nil:
		return none, err
	case reply.Permission == "":
		return none, r.callError(ctx, call, errors.New("it has no permission"))
	}
	return forge.Permission{Level: reply.Permission, Role: reply.RoleName}, nil
}

const (
	writeContents = "contents: write"

	// treeEntries is the number of changes sent in one call.
	treeEntries = 100
)

// CreateBlob uploads a file of up to forge.MaxBlob bytes and returns its blob id.
func (r *repository) CreateBlob(ctx context.Context, content io.Reader) (string, error) {
	call := apiCall{action: "store a file in " + r.fullName, permission: writeContents}
	var encoded strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &encoded)
	size, err := io.Copy(encoder, io.LimitReader(content, forge.MaxBlob+1))
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", call.action, err)
	}
	if size > forge.MaxBlob {
		return "", &forge.Error{Kind: forge.Invalid, Doing: call.action, Message: fmt.Sprintf("it has more than %d MiB", forge.MaxBlob>>20), Remedy: "leave pull_request.commit.sign empty, so that it is pushed"}
	}
	blob, err := request(ctx, r, call, func() (*gh.Blob, *gh.Response, error) {
		return r.rest.Git.CreateBlob(ctx, r.owner, r.name, &gh.Blob{Content: gh.String(encoded.String()), Encoding: gh.String("base64")})
	})
	return blob.GetSHA(), err
}

// CreateTree makes a tree from base and edits, in several calls if there are many edits. It returns
// the id of the tree.
func (r *repository) CreateTree(ctx context.Context, base string, edits []forge.TreeEdit) (string, error) {
	call := apiCall{action: "store a tree in " + r.fullName, permission: writeContents, objects: []string{base}}
	err := r.runCall(ctx, call, func() error {
		for now := range slices.Chunk(edits, treeEntries) {
			tree, _, err := r.rest.Git.CreateTree(ctx, r.owner, r.name, base, treeEntriesOf(now))
			if err == nil {
				err = requireIdentified(tree) // without a base, the next call would make a tree of its own edits
			}
			if err != nil {
				return err
			}
			base = tree.GetSHA()
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return base, nil
}

// treeEntriesOf converts edits to entries of go-github.
func treeEntriesOf(edits []forge.TreeEdit) []*gh.TreeEntry {
	entries := make([]*gh.TreeEntry, 0, len(edits))
	for _, e := range edits {
		kind := "blob"
		if isSubmodule := e.Mode == "160000"; isSubmodule {
			kind = "commit"
		}
		entry := &gh.TreeEntry{Path: &e.Path, Mode: &e.Mode, Type: &kind, SHA: &e.ID}
		if e.Mode == "" {
			entry.Mode, entry.SHA = gh.String("100644"), nil // go-github sends a nil SHA as null, which deletes the path
		}
		entries = append(entries, entry)
	}
	return entries
}

// CreateCommit makes a commit. GitHub only signs it if the token is that of an App's bot.
func (r *repository) CreateCommit(ctx context.Context, message, tree, parent string) (*forge.SignedCommit, error) {
	call := apiCall{action: "make the commit in " + r.fullName, permission: writeContents, objects: []string{tree, parent}}
	var made gh.Commit
	err := r.runCall(ctx, call, func() error { // go-github's own call has more only for signatures
		err := r.sendJSON(ctx, http.MethodPost, fmt.Sprintf("repos/%s/git/commits", r.fullName),
			map[string]any{"message": message, "tree": tree, "parents": []string{parent}}, &made)
		if err != nil {
			return err
		}
		return requireIdentified(&made)
	})
	if err != nil {
		return nil, err
	}
	return &forge.SignedCommit{
		SHA: made.GetSHA(), Verified: made.GetVerification().GetVerified(), Reason: made.GetVerification().GetReason(),
	}, nil
}

// CreateBranch makes a branch at a commit.
func (r *repository) CreateBranch(ctx context.Context, branch, commit string) error {
	call := apiCall{
		action: fmt.Sprintf("make the branch %s of %s", branch, r.fullName), permission: writeContents,
		objects: []string{commit}, ref: headsPrefix + branch,
	}
	ref := &gh.Reference{Ref: gh.String("refs/heads/" + branch), Object: &gh.GitObject{SHA: &commit}}
	return r.runCall(ctx, call, func() error {
		_, _, err := r.rest.Git.CreateRef(ctx, r.owner, r.name, ref)
		return err
	})
}
