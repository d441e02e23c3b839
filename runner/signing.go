package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// The values of pull_request.commit.sign.
const (
	signGitHub = "github" // GitHub makes the commit and signs it
	signSSH    = "ssh"    // with the key in pull_request.commit.key_env
)

// canSign reads the key before it is needed.
func (r *run) canSign(ctx context.Context) error {
	if r.job.PullRequest.Commit.Sign != signSSH {
		return nil
	}
	key, err := r.signingKey(ctx)
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "signing_key", "The commit cannot be signed: %s.", outcome.Trimmed(err)).Because(err)
	}
	r.key = key
	return nil
}

// mostKey is how many bytes of a file are read for a key.
const mostKey = 64 << 10

// signingKey is the key that the variable holds, or the file that it names.
func (r *run) signingKey(ctx context.Context) (*sshsig.Key, error) {
	name := r.job.PullRequest.Commit.KeyEnv
	value := r.env.Get(name)
	if name == "" || value == "" {
		return nil, errors.New("pull_request.commit.sign is ssh, and the variable that pull_request.commit.key_env names has no key")
	}
	if filepath.IsAbs(value) && !strings.Contains(value, "\n") {
		pem, err := given.Read(ctx, value, mostKey)
		if err != nil {
			return nil, fmt.Errorf("the file that %s names cannot be read", name)
		}
		value = string(pem)
	}
	key, err := sshsig.ParseKey([]byte(strings.TrimRight(value, "\n") + "\n"))
	if err != nil {
		return nil, fmt.Errorf("what %s holds: %w", name, err)
	}
	return key, nil
}

// signature is how the commit is signed here; nil where it is not.
func (r *run) signer() func([]byte) (string, error) {
	if r.key == nil {
		return nil
	}
	return func(commit []byte) (string, error) { return r.key.Sign(sshsig.Git, commit) }
}

// commitOnGitHub lets GitHub make the commit and sign it. What its API cannot do
// is committed here instead, unsigned: made is false then.
func (r *run) commitOnGitHub(ctx context.Context, message string) (sha string, made bool, err error) {
	if r.job.PullRequest.Commit.Sign != signGitHub {
		return "", false, nil
	}
	if r.publishMode() != publishGitHub {
		r.warnInBody("unsigned", "The commit is not signed: it is GitHub that signs it, and it is made here.")
		return "", false, nil
	}
	if path, odd := r.notForAPI(); odd {
		r.warnInBody("unsigned", "The commit is not signed: GitHub's API cannot make one with the file %s.", jsonPath(path))
		return "", false, nil
	}
	tree, err := r.treeOnGitHub(ctx)
	if err != nil {
		return "", false, forgeFailure("The commit cannot be made on GitHub", err)
	}
	if tree != string(r.changes.Tree) {
		r.warnInBody("unsigned", "The commit is not signed: GitHub made another tree of the change (%s) than git does (%s), and it was pushed instead.", gitops.Short(tree), gitops.Short(string(r.changes.Tree)))
		return "", false, nil
	}
	commit, err := r.repo.CreateCommit(ctx, message, tree, r.base.SHA)
	if err != nil {
		return "", false, forgeFailure("The commit cannot be made on GitHub", err)
	}
	if !commit.Verified {
		r.warnInBody("unsigned", "GitHub made the commit and did not sign it (%s): it signs for the tokens of apps and of GitHub Actions alone.", commit.Reason)
	}
	r.published.onGitHub = true
	return commit.SHA, true, nil
}

// notForAPI is a file of the change that cannot be told in JSON or is too large
// for one call.
func (r *run) notForAPI() (path string, odd bool) {
	for _, f := range r.changes.Files {
		if !utf8.ValidString(f.Path) {
			return f.Path, true
		}
		if f.NewID == "" || f.NewMode == submoduleMode {
			continue
		}
		blob, size, err := r.checkout.Blob(f.NewID)
		if err != nil {
			return f.Path, true
		}
		_ = blob.Close()
		if size > forge.MaxBlob {
			return f.Path, true
		}
	}
	return "", false
}

const submoduleMode = "160000"

// treeOnGitHub stores the files of the change there, and the tree of them.
func (r *run) treeOnGitHub(ctx context.Context) (string, error) {
	stored := map[string]bool{}
	for _, f := range r.changes.Files {
		if f.NewID == "" || f.NewID == f.OldID || f.NewMode == submoduleMode || stored[f.NewID] {
			continue
		}
		if err := r.blobOnGitHub(ctx, f); err != nil {
			return "", err
		}
		stored[f.NewID] = true
	}
	return r.repo.CreateTree(ctx, string(r.base.Tree), treeEdits(r.changes.Files))
}

func (r *run) blobOnGitHub(ctx context.Context, f gitops.File) error {
	blob, _, err := r.checkout.Blob(f.NewID)
	if err != nil {
		return err
	}
	defer blob.Close()
	id, err := r.repo.CreateBlob(ctx, blob)
	if err == nil && id != f.NewID {
		err = fmt.Errorf("%q arrived as %s, not as %s", f.Path, id, f.NewID)
	}
	return err
}

// treeEdits are the files as edits of the base's tree. What goes because
// something else takes its place, a file for a folder or the other way round, is
// not deleted besides.
func treeEdits(files []gitops.File) []forge.TreeEdit {
	placed, folders := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if f.NewID == "" {
			continue
		}
		placed[f.Path] = true
		for _, folder := range foldersOf(f.Path) {
			folders[folder] = true
		}
	}
	var edits []forge.TreeEdit
	for _, f := range files {
		replaced := folders[f.Path]
		for _, folder := range foldersOf(f.Path) {
			replaced = replaced || placed[folder]
		}
		if f.NewID != "" || !replaced {
			edits = append(edits, forge.TreeEdit{Path: f.Path, Mode: f.NewMode, ID: f.NewID})
		}
	}
	return edits
}

// foldersOf are the folders that a path lies in.
func foldersOf(path string) []string {
	var list []string
	for i := range len(path) {
		if path[i] == '/' {
			list = append(list, path[:i])
		}
	}
	return list
}

// pointOnGitHub points the branch to a commit that GitHub has: a branch that is
// not there is made, one that is there moves under the same lease as in a push.
func (r *run) pointOnGitHub(ctx context.Context, commit string, before *tip) error {
	if before == nil {
		err := r.repo.CreateBranch(ctx, r.branch, commit)
		if forge.KindOf(err) != forge.Invalid {
			return forgeFailureOrNil("The branch "+r.branch+" cannot be made", err)
		}
	}
	options := remote.PushOptions{Branch: r.branch, Commit: commit}
	if before != nil {
		options.Expected = before.sha
	}
	if err := patiently(ctx, func() error { return remote.Push(ctx, r.remote(), options) }); err != nil {
		return remoteFailure(fmt.Sprintf("The branch %s cannot be moved in %s", r.branch, r.remote().Name()), err)
	}
	return nil
}

// releaseCommit takes a commit that GitHub made to its branch.
func (r *run) releaseCommit(ctx context.Context, commit string, before *tip) error {
	if err := r.pointOnGitHub(ctx, commit, before); err != nil {
		return err
	}
	r.published.remote = r.remote().Name()
	return r.rec.Append(transcript.TypePublish, transcript.Publish{Step: "push", Branch: r.branch, HeadSHA: commit, Remote: r.published.remote})
}
