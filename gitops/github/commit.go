package github

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
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
	if err := r.check(what); err != nil {
		return "", err
	}
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
	blob, _, err := r.rest.Git.CreateBlob(ctx, r.owner, r.name, &gh.Blob{Content: gh.String(encoded.String()), Encoding: gh.String("base64")})
	if err != nil {
		return "", r.failed(ctx, what, err)
	}
	return blob.GetSHA(), nil
}

func (r *repository) CreateTree(ctx context.Context, base string, edits []forge.TreeEdit) (string, error) {
	what := call{doing: "store a tree in " + r.fullName, permission: writeContents}
	if err := r.checkObject(what, base); err != nil {
		return "", err
	}
	for len(edits) > 0 {
		now := edits[:min(treeEntries, len(edits))]
		edits = edits[len(now):]
		tree, _, err := r.rest.Git.CreateTree(ctx, r.owner, r.name, base, treeEntriesOf(now))
		if err != nil {
			return "", r.failed(ctx, what, err)
		}
		base = tree.GetSHA()
	}
	return base, nil
}

var typeOfMode = map[string]string{"160000": "commit"}

func treeEntriesOf(edits []forge.TreeEdit) []*gh.TreeEntry {
	entries := make([]*gh.TreeEntry, 0, len(edits))
	for _, e := range edits {
		kind, known := typeOfMode[e.Mode]
		if !known {
			kind = "blob"
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
	what := call{doing: "make the commit in " + r.fullName, permission: writeContents}
	for _, id := range []string{tree, parent} {
		if err := r.checkObject(what, id); err != nil {
			return nil, err
		}
	}
	// go-github's own call adds nothing but a signature.
	request, err := r.rest.NewRequest(http.MethodPost, fmt.Sprintf("repos/%s/git/commits", r.fullName),
		map[string]any{"message": message, "tree": tree, "parents": []string{parent}})
	var made gh.Commit
	if err == nil {
		_, err = r.rest.Do(ctx, request, &made)
	}
	if err != nil {
		return nil, r.failed(ctx, what, err)
	}
	return &forge.SignedCommit{
		SHA: made.GetSHA(), Verified: made.GetVerification().GetVerified(), Reason: made.GetVerification().GetReason(),
	}, nil
}

func (r *repository) CreateBranch(ctx context.Context, branch, commit string) error {
	what := call{doing: fmt.Sprintf("make the branch %s of %s", branch, r.fullName), permission: writeContents}
	if err := r.checkObject(what, commit); err != nil {
		return err
	}
	if err := r.checkBranch(what, branch); err != nil {
		return err
	}
	ref := &gh.Reference{Ref: gh.String("refs/heads/" + branch), Object: &gh.GitObject{SHA: &commit}}
	if _, _, err := r.rest.Git.CreateRef(ctx, r.owner, r.name, ref); err != nil {
		return r.failed(ctx, what, err)
	}
	return nil
}
