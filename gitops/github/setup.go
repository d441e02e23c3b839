package github

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"
	"golang.org/x/crypto/nacl/box"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Setup is a repository handle for `agent-ci init`. It handles secrets, labels, settings and files.
// Runs do not use it.
type Setup struct{ *repository }

// Setup returns the handle for agent-ci init of repository OWNER/NAME, without a request.
func (c *Client) Setup(name string) Setup { return Setup{c.repository(name)} }

var secretPattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// PutSecret creates or replaces a secret of Actions. It encrypts the value with the repository's
// public key: https://docs.github.com/en/rest/guides/encrypting-secrets-for-the-rest-api
func (s Setup) PutSecret(ctx context.Context, name, value string) error {
	call := apiCall{action: fmt.Sprintf("set the secret %s of %s", name, s.fullName), permission: "secrets: write"}
	if !secretPattern().MatchString(name) {
		return &forge.Error{Kind: forge.Invalid, Doing: call.action, Message: "that is not the name of a secret", Remedy: "use letters, digits and underscores"}
	}
	key, err := request(ctx, s.repository, call, func() (*gh.PublicKey, *gh.Response, error) {
		return s.rest.Actions.GetRepoPublicKey(ctx, s.owner, s.name)
	})
	if err != nil {
		return err
	}
	sealed, err := encryptSecret(value, key.GetKey())
	if err != nil {
		return fmt.Errorf("%s: %w", call.action, err)
	}
	return s.runCall(ctx, call, func() error {
		_, err := s.rest.Actions.CreateOrUpdateRepoSecret(ctx, s.owner, s.name, &gh.EncryptedSecret{Name: name, KeyID: key.GetKeyID(), EncryptedValue: sealed})
		return err
	})
}

// encryptSecret encrypts a value with a public key. Both key and result are base64.
func encryptSecret(value, key string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return "", errors.New("seal it: the server's public key is not 32 bytes of base64")
	}
	sealed, err := box.SealAnonymous(nil, []byte(value), (*[32]byte)(raw), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("seal it: %w", err)
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}

// LetWorkflowsOpenPullRequests allows workflows to open pull requests. It keeps the default
// permissions of workflows.
func (s Setup) LetWorkflowsOpenPullRequests(ctx context.Context) error {
	call := apiCall{action: "let workflows of " + s.fullName + " open pull requests", permission: "administration: write"}
	now, err := request(ctx, s.repository, call, func() (*gh.DefaultWorkflowPermissionRepository, *gh.Response, error) {
		return s.rest.Repositories.GetDefaultWorkflowPermissions(ctx, s.owner, s.name)
	})
	if err != nil {
		return err
	}
	if now.GetCanApprovePullRequestReviews() {
		return nil
	}
	wanted := gh.DefaultWorkflowPermissionRepository{DefaultWorkflowPermissions: now.DefaultWorkflowPermissions, CanApprovePullRequestReviews: gh.Bool(true)}
	return s.runCall(ctx, call, func() error {
		_, _, err := s.rest.Repositories.EditDefaultWorkflowPermissions(ctx, s.owner, s.name, wanted)
		return err
	})
}

// CreateLabel creates a label if it does not exist.
func (s Setup) CreateLabel(ctx context.Context, name, color, description string) error {
	call := apiCall{action: fmt.Sprintf("make the label %s in %s", name, s.fullName), permission: writeIssues}
	err := s.runCall(ctx, call, func() error {
		_, _, err := s.rest.Issues.CreateLabel(ctx, s.owner, s.name, &gh.Label{Name: &name, Color: &color, Description: &description})
		return err
	})
	if refused, ok := errors.AsType[*gh.ErrorResponse](err); ok && slices.ContainsFunc(refused.Errors, func(e gh.Error) bool { return e.Code == "already_exists" }) {
		return nil
	}
	return err
}

// Entries lists a folder of a tree, with paths from the root. A missing folder gives an empty
// list. It fails if the path is a file, because new files in the folder would replace it.
func (s Setup) Entries(ctx context.Context, tree, folder string) ([]forge.TreeEdit, error) {
	call := apiCall{action: fmt.Sprintf("read %s of %s", folder, s.fullName), permission: "contents: read", objects: []string{tree}}
	found, err := s.getTree(ctx, call, tree)
	if err != nil {
		return nil, err
	}
	at := ""
	for name := range strings.SplitSeq(folder, "/") {
		at = path.Join(at, name)
		i := slices.IndexFunc(found.Entries, func(e *gh.TreeEntry) bool { return e.GetPath() == name })
		if i < 0 {
			return nil, nil
		}
		if entry := found.Entries[i]; entry.GetType() != "tree" {
			return nil, &forge.Error{Kind: forge.Invalid, Doing: call.action, Message: fmt.Sprintf("%s is no folder but has mode %s", at, entry.GetMode()), Remedy: "put a folder in its place"}
		}
		if found, err = s.getTree(ctx, call, found.Entries[i].GetSHA()); err != nil {
			return nil, err
		}
	}
	var entries []forge.TreeEdit
	for _, e := range found.Entries {
		entries = append(entries, forge.TreeEdit{Path: folder + "/" + e.GetPath(), Mode: e.GetMode(), ID: e.GetSHA()})
	}
	return entries, nil
}

// getTree reads one folder of a tree.
func (s Setup) getTree(ctx context.Context, call apiCall, id string) (*gh.Tree, error) {
	return request(ctx, s.repository, call, func() (*gh.Tree, *gh.Response, error) {
		return s.rest.Git.GetTree(ctx, s.owner, s.name, id, false)
	})
}

// Blob returns the content of a file by its blob id.
func (s Setup) Blob(ctx context.Context, id string) ([]byte, error) {
	call := apiCall{action: "read a file of " + s.fullName, permission: "contents: read", objects: []string{id}}
	blob, err := request(ctx, s.repository, call, func() (*gh.Blob, *gh.Response, error) {
		return s.rest.Git.GetBlob(ctx, s.owner, s.name, id)
	})
	if err != nil {
		return nil, err
	}
	content, err := base64.StdEncoding.DecodeString(blob.GetContent()) // DecodeString ignores line breaks
	if err != nil {
		return nil, fmt.Errorf("%s: it is not in base64: %w", call.action, err)
	}
	return content, nil
}

// HasSecret reports whether the repository has a secret of Actions.
func (s Setup) HasSecret(ctx context.Context, name string) (bool, error) {
	call := apiCall{action: fmt.Sprintf("look for the secret %s of %s", name, s.fullName), permission: "secrets: read"}
	_, err := request(ctx, s.repository, call, func() (*gh.Secret, *gh.Response, error) {
		return s.rest.Actions.GetRepoSecret(ctx, s.owner, s.name, name)
	})
	if forge.KindOf(err) == forge.NotFound {
		return false, nil
	}
	return err == nil, err
}

// DeleteBranch deletes a branch if it exists.
func (s Setup) DeleteBranch(ctx context.Context, branch string) error {
	call := apiCall{action: fmt.Sprintf("delete the branch %s of %s", branch, s.fullName), permission: writeContents, ref: headsPrefix + branch}
	err := s.runCall(ctx, call, func() error {
		_, err := s.rest.Git.DeleteRef(ctx, s.owner, s.name, call.ref)
		return err
	})
	if refused, ok := errors.AsType[*forge.Error](err); ok && refused.Status == http.StatusUnprocessableEntity {
		return nil // there is no such branch
	}
	return err
}
