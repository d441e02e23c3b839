package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

type Signature struct {
	Name, Email string
	When        time.Time
}

type CommitOptions struct {
	Message           string
	Author, Committer Signature
	// Sign returns the armored signature of a commit's text (gitformat-signature(5)). If it is nil,
	// the commit is unsigned.
	Sign func(commit []byte) (string, error)
}

// WriteCommit writes a commit of a change set on its base and returns its id. It moves no branch:
// the commit stays in the private git folder until Switch.
func (c *Checkout) WriteCommit(ctx context.Context, cs *ChangeSet, o CommitOptions) (sha string, err error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	text, err := o.encode(cs.Tree, cs.Base)
	if err != nil {
		return "", err
	}
	id, err := c.objects.WriteBytes(plumbing.CommitObject, text)
	if err != nil {
		return "", fmt.Errorf("write the commit: %w", err)
	}
	return id.String(), nil
}

// encode returns the text of a commit of a tree on a base, signed if o.Sign is set.
func (o CommitOptions) encode(tree Tree, base Base) ([]byte, error) {
	commit := object.Commit{
		Author: o.Author.object(), Committer: o.Committer.object(),
		Message:      strings.TrimRight(strings.ReplaceAll(o.Message, "\x00", ""), "\n") + "\n",
		TreeHash:     tree.hash(),
		ParentHashes: []plumbing.Hash{plumbing.NewHash(base.SHA)},
	}
	if o.Sign != nil {
		if err := sign(&commit, o.Sign); err != nil {
			return nil, fmt.Errorf("sign the commit: %w", err)
		}
	}
	text, err := objects.Encoded(commit.Encode)
	if err != nil {
		return nil, fmt.Errorf("write the commit: %w", err)
	}
	return text, nil
}

// sign adds a signature to commit. with signs its text.
func sign(commit *object.Commit, with func([]byte) (string, error)) error {
	text, err := objects.Encoded(commit.EncodeWithoutSignature)
	if err != nil {
		return err
	}
	commit.PGPSignature, err = with(text) // the header is called gpgsig for SSH too
	return err
}

// object returns the signature without characters that would break a line of a commit or an
// address.
func (s Signature) object() object.Signature {
	clean := strings.NewReplacer("\n", "", "\r", "", "\x00", "", "<", "", ">", "")
	return object.Signature{
		Name: strings.TrimSpace(clean.Replace(s.Name)), Email: strings.TrimSpace(clean.Replace(s.Email)), When: s.When,
	}
}

// Blob opens the content of a file by the blob id in a change set, and returns its size in bytes.
func (c *Checkout) Blob(id string) (io.ReadCloser, int64, error) {
	hash, err := repository.ParseID(id)
	if err != nil {
		return nil, 0, err
	}
	return c.objects.Blob(hash)
}

// Tip returns the commit at the tip of a local branch, or nil if the branch does not exist.
func (c *Checkout) Tip(ctx context.Context, branch string) (*forge.Commit, error) {
	return readTip(ctx, c.repo.Layout, c.objects, branch)
}

// ReadTip is Tip for a bare or plain repository at a local path. It only reads files, and runs
// nothing that is configured in that repository.
func ReadTip(ctx context.Context, path, branch string) (info *forge.Commit, err error) {
	l, store, err := openElsewhere(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return readTip(ctx, l, store, branch)
}

// HeadOf returns the branch of HEAD in a bare or plain repository. It returns "" for a detached
// HEAD, or if there is no commit.
func HeadOf(path string) (branch string, err error) {
	l, err := repository.LayoutAt(path)
	if err != nil {
		return "", err
	}
	head, _, err := l.Head()
	if name, is := strings.CutPrefix(head, "ref: refs/heads/"); is && err == nil {
		return name, nil
	}
	if errors.Is(err, repository.ErrNoRef) {
		err = nil
	}
	return "", err
}

// openElsewhere opens a bare or plain repository for reading. The caller closes the store.
func openElsewhere(path string) (repository.Layout, *objects.Store, error) {
	l, err := repository.LayoutAt(path)
	if err != nil {
		return l, nil, err
	}
	folders, err := repository.ObjectFolders(l.CommonDir)
	if err != nil {
		return l, nil, err
	}
	return l, objects.Open("", folders...), nil
}

// readTip returns the commit at the tip of a branch, or nil if the branch does not exist.
func readTip(ctx context.Context, l repository.Layout, store *objects.Store, branch string) (*forge.Commit, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	id, err := l.ReadRef("refs/heads/" + branch)
	if errors.Is(err, repository.ErrNoRef) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	commit, err := store.Commit(id)
	if err != nil {
		return nil, fmt.Errorf("look at branch %s: %w", branch, err)
	}
	return infoOf(commit), nil
}

// infoOf converts a commit to the form of package forge.
func infoOf(c *object.Commit) *forge.Commit {
	info := &forge.Commit{
		SHA: c.Hash.String(), Tree: c.TreeHash.String(), Message: c.Message,
		Author: c.Author.Name + " <" + c.Author.Email + ">", Committer: c.Committer.Name + " <" + c.Committer.Email + ">",
		Authored: c.Author.When, Committed: c.Committer.When,
	}
	for _, p := range c.ParentHashes {
		info.Parents = append(info.Parents, p.String())
	}
	return info
}

// Short returns the first 12 characters of a commit id, for messages.
func Short(sha string) string { return sha[:min(len(sha), 12)] }

// DefaultBranch returns the branch of origin's HEAD at clone time, or "".
func (c *Checkout) DefaultBranch() string { return c.repo.DefaultBranch() }

// BranchesAt lists the local branches at a commit, sorted.
func (c *Checkout) BranchesAt(sha string) ([]string, error) { return c.repo.BranchesAt(sha) }

// BranchFits returns an error if another branch prevents one called name: "a" and "a/b" cannot both exist.
func (c *Checkout) BranchFits(name string) error { return c.repo.BranchFits(name) }

// Holds reports whether a local repository contains a commit. It only reads files, and runs nothing
// that is configured in that repository.
func Holds(path, sha string) (_ bool, err error) {
	_, store, err := openElsewhere(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = store.Commit(plumbing.NewHash(sha))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}
