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

// CreateBlob stores the content of a file and gives its id.
func (c *Client) CreateBlob(ctx context.Context, owner, name string, content io.Reader) (string, error) {
	what := call{doing: fmt.Sprintf("store a file in %s/%s", owner, name), permission: writeContents}
	if err := checkRepository(what, owner, name); err != nil {
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
	blob, _, err := c.rest.Git.CreateBlob(ctx, owner, name, &gh.Blob{Content: gh.String(encoded.String()), Encoding: gh.String("base64")})
	if err != nil {
		return "", c.failed(ctx, what, err)
	}
	return blob.GetSHA(), nil
}

// CreateTree stores the tree that edits make of the tree base and gives its id.
func (c *Client) CreateTree(ctx context.Context, owner, name, base string, edits []forge.TreeEdit) (string, error) {
	what := call{doing: fmt.Sprintf("store a tree in %s/%s", owner, name), permission: writeContents}
	if err := checkObject(what, owner, name, base); err != nil {
		return "", err
	}
	for len(edits) > 0 {
		now := edits[:min(treeEntries, len(edits))]
		edits = edits[len(now):]
		tree, _, err := c.rest.Git.CreateTree(ctx, owner, name, base, treeEntriesOf(now))
		if err != nil {
			return "", c.failed(ctx, what, err)
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

// CreateCommit makes a commit in the name of the token's account. GitHub signs
// it for the bots of apps, and for nobody else.
func (c *Client) CreateCommit(ctx context.Context, owner, name, message, tree, parent string) (*forge.SignedCommit, error) {
	what := call{doing: fmt.Sprintf("make the commit in %s/%s", owner, name), permission: writeContents}
	for _, id := range []string{tree, parent} {
		if err := checkObject(what, owner, name, id); err != nil {
			return nil, err
		}
	}
	// go-github's own call adds nothing but a signature.
	request, err := c.rest.NewRequest(http.MethodPost, fmt.Sprintf("repos/%s/%s/git/commits", owner, name),
		map[string]any{"message": message, "tree": tree, "parents": []string{parent}})
	var made gh.Commit
	if err == nil {
		_, err = c.rest.Do(ctx, request, &made)
	}
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return &forge.SignedCommit{
		SHA: made.GetSHA(), Verified: made.GetVerification().GetVerified(), Reason: made.GetVerification().GetReason(),
	}, nil
}

// CreateBranch makes a branch that is not there; one that is there is an error
// of kind Invalid.
func (c *Client) CreateBranch(ctx context.Context, owner, name, branch, commit string) error {
	what := call{doing: fmt.Sprintf("make the branch %s of %s/%s", branch, owner, name), permission: writeContents}
	if err := checkObject(what, owner, name, commit); err != nil {
		return err
	}
	if err := checkBranch(what, branch); err != nil {
		return err
	}
	ref := &gh.Reference{Ref: gh.String("refs/heads/" + branch), Object: &gh.GitObject{SHA: &commit}}
	if _, _, err := c.rest.Git.CreateRef(ctx, owner, name, ref); err != nil {
		return c.failed(ctx, what, err)
	}
	return nil
}
