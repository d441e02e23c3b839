package trees

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
	"github.com/agent-ci/agent-ci/gitops/sshsig"
)

type Signature struct {
	Name, Email string
	When        time.Time
}

type CommitOptions struct {
	Message           string
	Author, Committer Signature
	Key               *sshsig.Key // signs the commit; nil for none
}

// WriteCommit writes a commit of a change set on its base and returns its id. It moves no branch:
// the commit stays in the private git folder until Switch.
func (s *Store) WriteCommit(ctx context.Context, cs *ChangeSet, o CommitOptions) (sha string, err error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	text, err := o.Encode(cs.Tree, cs.Base)
	if err != nil {
		return "", err
	}
	id, err := s.objects.WriteBytes(plumbing.CommitObject, text)
	if err != nil {
		return "", fmt.Errorf("write the commit: %w", err)
	}
	return id.String(), nil
}

// Encode returns the text of a commit of a tree on a base, signed if o.Key is set.
func (o CommitOptions) Encode(tree Tree, base Base) ([]byte, error) {
	commit := object.Commit{
		Author: o.Author.object(), Committer: o.Committer.object(),
		Message:      strings.TrimRight(strings.ReplaceAll(o.Message, "\x00", ""), "\n") + "\n",
		TreeHash:     tree.Hash(),
		ParentHashes: []plumbing.Hash{plumbing.NewHash(base.SHA)},
	}
	if o.Key != nil {
		if err := sign(&commit, o.Key); err != nil {
			return nil, fmt.Errorf("sign the commit: %w", err)
		}
	}
	text, err := objects.EncodeObject(commit.Encode)
	if err != nil {
		return nil, fmt.Errorf("write the commit: %w", err)
	}
	return text, nil
}

// sign adds a signature to commit (gitformat-signature(5)).
func sign(commit *object.Commit, key *sshsig.Key) error {
	text, err := objects.EncodeObject(commit.EncodeWithoutSignature)
	if err != nil {
		return err
	}
	commit.PGPSignature, err = key.Sign(sshsig.Git, text) // the header is called gpgsig for SSH too
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
func (s *Store) Blob(id string) (io.ReadCloser, int64, error) {
	hash, err := repository.ParseID(id)
	if err != nil {
		return nil, 0, err
	}
	return s.objects.Blob(hash)
}

// Tip returns the commit at the tip of a local branch, or nil if the branch does not exist.
func (s *Store) Tip(ctx context.Context, branch string) (*forge.Commit, error) {
	return TipOf(ctx, s.repo.Layout, s.objects, branch)
}

// TipOf returns the commit at the tip of a branch, or nil if the branch does not exist.
func TipOf(ctx context.Context, l repository.Layout, store *objects.Store, branch string) (*forge.Commit, error) {
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
	return commitInfo(commit), nil
}

// commitInfo converts a commit to the form of package forge.
func commitInfo(c *object.Commit) *forge.Commit {
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
