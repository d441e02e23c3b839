package publish

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// commit makes the commit. onForge reports that the forge made it, so it does not exist on this machine.
func (f Forge) commit(ctx context.Context, p *Proposal) (sha string, onForge bool, err error) {
	message, err := f.commitMessage(p)
	if err != nil {
		return "", false, err
	}
	if p.Job.PullRequest.Commit.Sign == signGitHub {
		if sha, err = f.commitOnForge(ctx, p, message); err != nil || sha != "" {
			return sha, true, err
		}
	}
	sha, err = f.commitHere(ctx, p, message)
	return sha, false, err
}

// commitOnForge lets the forge make and sign the commit. It returns "" if the forge's API cannot make it. The
// commit is then made on this machine, unsigned.
func (f Forge) commitOnForge(ctx context.Context, p *Proposal, message string) (sha string, err error) {
	if path := fileUnfitForAPI(f.Workspace.Checkout(), p.Change.Files); path != "" {
		f.warnInPull(p, "unsigned", "The commit is not signed: GitHub's API cannot make one with the file %s.", workspace.JSONPath(path))
		return "", nil
	}
	tree, err := f.storeTree(ctx, p)
	if err != nil {
		return "", intake.ForgeFailure("The commit cannot be made on GitHub", err)
	}
	if tree != string(p.Change.Tree) {
		f.warnInPull(p, "unsigned", "The commit is not signed: GitHub made another tree of the change (%s) than git does (%s), and it was pushed instead.", clip.SHA(tree), clip.SHA(string(p.Change.Tree)))
		return "", nil
	}
	commit, err := f.Repo.CreateCommit(ctx, message, tree, p.Base.SHA)
	if err != nil {
		return "", intake.ForgeFailure("The commit cannot be made on GitHub", err)
	}
	if !commit.Verified {
		f.warnInPull(p, "unsigned", "GitHub made the commit and did not sign it (%s): it signs for the tokens of apps and of GitHub Actions alone.", commit.Reason)
	}
	return commit.SHA, f.recordStep(transcript.Publish{Step: "commit", Branch: p.Task.Branch, HeadSHA: commit.SHA})
}

// fileUnfitForAPI returns a changed file that the forge's API cannot store, or "". Its path is not UTF-8, or
// it is too large for one call.
func fileUnfitForAPI(in *gitops.Checkout, files []changeset.File) (path string) {
	for _, file := range files {
		if !utf8.ValidString(file.Path) || !blobFits(in, file) {
			return file.Path
		}
	}
	return ""
}

// blobFits reports whether the forge's API can store a file's content. It is true for a file without content.
func blobFits(in *gitops.Checkout, file changeset.File) bool {
	if file.NewID == "" || file.NewMode == submoduleMode {
		return true
	}
	blob, size, err := in.Blob(file.NewID)
	if err != nil {
		return false
	}
	_ = blob.Close()
	return size <= forge.MaxBlob
}

// submoduleMode is git's mode of a submodule, which has no content to store.
const submoduleMode = "160000"

// storeTree stores the change's files and tree on the forge. It returns the tree's id.
func (f Forge) storeTree(ctx context.Context, p *Proposal) (string, error) {
	stored := map[string]bool{}
	for _, file := range p.Change.Files {
		hasContent := file.NewID != "" && file.NewMode != submoduleMode
		if !hasContent || file.NewID == file.OldID || stored[file.NewID] {
			continue
		}
		if err := f.storeBlob(ctx, file); err != nil {
			return "", err
		}
		stored[file.NewID] = true
	}
	return f.Repo.CreateTree(ctx, string(p.Base.Tree), treeEdits(p.Change.Files))
}

// storeBlob stores a file's content on the forge, and verifies its id.
func (f Forge) storeBlob(ctx context.Context, file changeset.File) error {
	blob, _, err := f.Workspace.Checkout().Blob(file.NewID)
	if err != nil {
		return err
	}
	defer blob.Close()
	id, err := f.Repo.CreateBlob(ctx, blob)
	if err == nil && id != file.NewID {
		err = fmt.Errorf("%q arrived as %s, not as %s", file.Path, id, file.NewID)
	}
	return err
}

// treeEdits returns the changed files as edits of the base's tree. It omits the deletion of a file that another
// changed file replaces: by a folder at its path, or by a file at a folder above it.
func treeEdits(files []changeset.File) []forge.TreeEdit {
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

// foldersOf returns all folders above a path.
func foldersOf(path string) (list []string) {
	for i := range len(path) {
		if path[i] == '/' {
			list = append(list, path[:i])
		}
	}
	return list
}

// moveBranch creates or moves the branch to a commit on the forge. Like a push, it fails if the branch is no
// longer at before.
func (f Forge) moveBranch(ctx context.Context, p *Proposal, commit string, before *tip, out *Publication) error {
	branch, to := p.Task.Branch, f.Remote()
	if before == nil {
		if err := workspace.RetryUnreachable(ctx, func() error { return f.uploadLFS(ctx, p.Change, to, branch) }); err != nil {
			return workspace.RemoteFailure(fmt.Sprintf("The branch %s cannot be made in %s", branch, to.Name()), err)
		}
		err := f.Repo.CreateBranch(ctx, branch, commit)
		if err == nil {
			return f.recordPushed(branch, commit, to, out)
		}
		if forge.KindOf(err) != forge.Invalid { // for Invalid, the push below finds out why
			return intake.ForgeFailure("The branch "+branch+" cannot be made", err)
		}
	}
	if err := f.Workspace.Fetch(ctx, to, remote.FetchOptions{Commit: commit}); err != nil {
		return err
	}
	return f.push(ctx, p, to, commit, before, out)
}
