package worktree

import (
	"context"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
)

// Fill checks a tree out into the work tree of another git folder, that of root,
// and stages it there.
func (w *Worktree) Fill(ctx context.Context, root *os.Root, tree plumbing.Hash) error {
	if w.repo.Git.There() {
		return w.fillWithGit(ctx, root, tree)
	}
	return w.fillByItself(ctx, root, tree)
}

func (w *Worktree) fillWithGit(ctx context.Context, root *os.Root, tree plumbing.Hash) error {
	git := program.Isolated(w.repo.Git.Path, os.Environ(), w.repo.Root, filepath.Join(root.Name(), ".git"), root.Name())
	if _, err := git.Run(ctx, root.Name(), nil, "read-tree", tree.String()); err != nil {
		return err
	}
	_, err := git.Run(ctx, root.Name(), nil, "checkout-index", "-q", "-a", "-u")
	return err
}

func (w *Worktree) fillByItself(ctx context.Context, root *os.Root, tree plumbing.Hash) error {
	s := smudger{Worktree: w, dir: root, attributes: w.treeAttributes(tree)}
	changes, err := w.objects.Differences(ctx, plumbing.ZeroHash, tree)
	if err != nil {
		return err
	}
	stats, err := s.write(ctx, changes)
	if err != nil {
		return err
	}
	entries := make([]index.Entry, 0, len(changes))
	for _, d := range changes {
		entries = append(entries, index.Entry{Path: d.Path, Mode: d.New.Mode, ID: d.New.ID, Stat: stats[d.Path]})
	}
	return index.WriteNew(filepath.Join(root.Name(), ".git", "index"), entries)
}
