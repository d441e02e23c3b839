package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// ApplyPatch applies a patch of WritePatch to a tree, including binary files, modes and links. It
// applies all of it or fails. The work tree does not change. The base of the result is the tree,
// without a commit.
func (s *Store) ApplyPatch(ctx context.Context, tree Tree, patch []byte) (*ChangeSet, error) {
	dir, err := os.MkdirTemp(s.repo.PrivateDir, "patched-")
	if err != nil {
		return nil, fmt.Errorf("apply a patch: %w", err)
	}
	defer os.RemoveAll(dir)
	cs, err := s.applyPatch(ctx, dir, tree, patch)
	if err != nil {
		return nil, fmt.Errorf("apply a patch: %w", err)
	}
	return cs, nil
}

// applyPatch is ApplyPatch with an empty folder for git.
func (s *Store) applyPatch(ctx context.Context, dir string, tree Tree, patch []byte) (*ChangeSet, error) {
	before, after, err := s.applyPatchToFiles(ctx, dir, tree, patch)
	if err != nil {
		return nil, err
	}
	changes, err := s.objects.Differences(ctx, before, after)
	if err != nil {
		return nil, err
	}
	patched, err := s.objects.Apply(tree.Hash(), objects.Updates(changes, nil))
	if err != nil {
		return nil, err
	}
	cs, err := s.Compare(ctx, Base{Tree: tree}, IDOf(patched))
	if err == nil && len(cs.Files) > len(changes) {
		err = errors.New("it puts a file in the place of a folder, or a folder in the place of a file")
	}
	return cs, err
}

// applyPatchToFiles applies the patch to a tree that contains only the files named in the patch. It
// returns that tree before and after. dir is an empty folder.
func (s *Store) applyPatchToFiles(ctx context.Context, dir string, tree Tree, patch []byte) (before, after plumbing.Hash, err error) {
	git, err := s.repo.PrivateGit()
	if err != nil {
		return before, after, err
	}
	git = git.With("GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	run := func(stdin []byte, args ...string) (string, error) {
		out, err := git.Run(ctx, dir, bytes.NewReader(stdin), args...)
		return string(out), err
	}
	named, err := run(patch, "apply", "--numstat", "-z", "-")
	if err != nil {
		return before, after, err
	}
	oldFiles, err := s.filesIn(tree, named)
	if err != nil {
		return before, after, err
	}
	if err := s.objects.OwnFiles(ctx, oldFiles); err != nil {
		return before, after, err
	}
	if before, err = s.objects.Apply(plumbing.ZeroHash, oldFiles); err != nil {
		return before, after, err
	}
	if _, err = run(nil, "read-tree", before.String()); err == nil {
		_, err = run(patch, "apply", "--cached", "--binary", "--whitespace=nowarn", "-")
	}
	if err != nil {
		return before, after, err
	}
	now, err := run(nil, "write-tree")
	return before, plumbing.NewHash(strings.TrimSpace(now)), err
}

// filesIn returns those files of a tree that a patch names. named is the output of git apply --numstat -z for the patch.
func (s *Store) filesIn(tree Tree, named string) (files []index.Entry, err error) {
	for line := range strings.SplitSeq(strings.TrimSuffix(named, "\x00"), "\x00") {
		parts := strings.SplitN(line, "\t", 3)
		if len(parts) != 3 || !objects.ValidPath(parts[2]) {
			return nil, fmt.Errorf("%q is no path of a checkout", line)
		}
		there, err := s.objects.Find(tree.Hash(), parts[2])
		if err != nil {
			return nil, err
		}
		if there.Mode != 0 && !there.IsTree() {
			files = append(files, there.At(parts[2]))
		}
	}
	return files, nil
}
