package github

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const (
	writeContents = "contents: write"

	// treeEntries is how many changes of a tree go into one call.
	treeEntries = 100
)

func (r *repository) CreateBlob(ctx context.Context, content io.Reader) (string, error) {
	what := call{doing: "store a file in " + r.fullName, permission: writeContents}
	var encoded strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &encoded)
	size, err := io.Copy(encoder, io.LimitReader(content, forge.MaxBlob+1))
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what.doing, err)
	}
	if size > forge.MaxBlob {
		return "", &forge.Error{Kind: forge.Invalid, Doing: what.doing, Message: fmt.Sprintf("it has more than %d MiB", forge.MaxBlob>>20), Remedy: "leave pull_request.commit.sign empty, so that it is pushed"}
	}
	blob, err := ask(ctx, r, what, func() (*gh.Blob, *gh.Response, error) {
		return r.rest.Git.CreateBlob(ctx, r.owner, r.name, &gh.Blob{Content: gh.String(encoded.String()), Encoding: gh.String("base64")})
	})
	return blob.GetSHA(), err
}

func (r *repository) CreateTree(ctx context.Context, base string, edits []forge.TreeEdit) (string, error) {
	what := call{doing: "store a tree in " + r.fullName, permission: writeContents, objects: []string{base}}
	err := r.do(ctx, what, func() error {
		for now := range slices.Chunk(edits, treeEntries) {
			tree, _, err := r.rest.Git.CreateTree(ctx, r.owner, r.name, base, treeEntriesOf(now))
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

func treeEntriesOf(edits []forge.TreeEdit) []*gh.TreeEntry {
	entries := make([]*gh.TreeEntry, 0, len(edits))
	for _, e := range edits {
		kind := "blob"
		if e.Mode == "160000" {
			kind = "commit"
		}
		entry := &gh.TreeEntry{Path: &e.Path, Mode: &e.Mode, Type: &kind, SHA: &e.ID}
		if e.Mode == "" {
			entry.Mode, entry.SHA = gh.String("100644"), nil // go-github writes null, which deletes
		}
		entries = append(entries, entry)
	}
	return entries
}

// CreateCommit makes a commit that GitHub signs for the bots of apps, and for
// nobody else.
func (r *repository) CreateCommit(ctx context.Context, message, tree, parent string) (*forge.SignedCommit, error) {
	what := call{doing: "make the commit in " + r.fullName, permission: writeContents, objects: []string{tree, parent}}
	var made gh.Commit
	err := r.do(ctx, what, func() error { // go-github's own call adds nothing but a signature
		return r.send(ctx, http.MethodPost, fmt.Sprintf("repos/%s/git/commits", r.fullName),
			map[string]any{"message": message, "tree": tree, "parents": []string{parent}}, &made)
	})
	if err != nil {
		return nil, err
	}
	return &forge.SignedCommit{
		SHA: made.GetSHA(), Verified: made.GetVerification().GetVerified(), Reason: made.GetVerification().GetReason(),
	}, nil
}

func (r *repository) CreateBranch(ctx context.Context, branch, commit string) error {
	what := call{
		doing: fmt.Sprintf("make the branch %s of %s", branch, r.fullName), permission: writeContents,
		objects: []string{commit}, ref: heads + branch,
	}
	ref := &gh.Reference{Ref: gh.String("refs/heads/" + branch), Object: &gh.GitObject{SHA: &commit}}
	return r.do(ctx, what, func() error {
		_, _, err := r.rest.Git.CreateRef(ctx, r.owner, r.name, ref)
		return err
	})
}
