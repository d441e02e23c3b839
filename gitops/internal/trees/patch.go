package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// diffOptions make the output of git depend only on the two trees, not on configuration.
var diffOptions = []string{
	"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index",
	"--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none", "--submodule=short",
}

// writeDiff writes git's diff between the base and the tree of cs to w. It ignores attributes,
// because the agent could hide text with them.
func (s *Store) writeDiff(ctx context.Context, cs *ChangeSet, w io.Writer, format ...string) error {
	if err := s.objects.CopyDifferences(ctx, cs.Base.Tree.Hash(), cs.Tree.Hash()); err != nil {
		return fmt.Errorf("compare the trees: %w", err)
	}
	args := append([]string{"-c", "core.attributesFile=" + os.DevNull}, diffOptions...)
	args = append(append(args, format...), string(cs.Base.Tree), string(cs.Tree))
	if err := s.streamGit(ctx, w, args...); err != nil {
		return fmt.Errorf("compare the trees: %w", err)
	}
	return nil
}

// streamGit runs git with an empty work tree and index, and writes its output to w. So git reads no file that
// commands could have made.
func (s *Store) streamGit(ctx context.Context, w io.Writer, args ...string) error {
	empty := filepath.Join(s.repo.PrivateDir, "empty")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return err
	}
	git, err := s.repo.PrivateGit()
	if err != nil {
		return err
	}
	return git.With("GIT_WORK_TREE="+empty, "GIT_INDEX_FILE="+filepath.Join(empty, "index")).Stream(ctx, empty, nil, w, args...)
}

// WritePatch writes the change as a git patch. `git apply --binary` can apply it, including binary
// files.
func (s *Store) WritePatch(ctx context.Context, cs *ChangeSet, w io.Writer) error {
	if cs.Empty() {
		return nil
	}
	if cs.patch != "" {
		_, err := io.WriteString(w, cs.patch)
		return err
	}
	return s.writeDiff(ctx, cs, w, patchOptions...)
}

var patchOptions = []string{"--patch", "--binary"}

// smallChange is the size limit in bytes, before and after, of a change whose patch is kept in
// memory.
const smallChange = 1 << 20

// countLines sets the numbers of added and deleted lines in a change set and its files. If changes
// are small, git writes the patch in the same run.
func (s *Store) countLines(ctx context.Context, cs *ChangeSet, changes []objects.Difference) error {
	if cs.Empty() {
		return nil
	}
	size, err := s.objects.SizeOf(changes)
	if err != nil {
		return fmt.Errorf("count lines: %w", err)
	}
	format := []string{"--numstat", "-z"}
	if size <= smallChange {
		format = append(format, patchOptions...)
	}
	var out bytes.Buffer
	if err := s.writeDiff(ctx, cs, &out, format...); err != nil {
		return fmt.Errorf("count lines: %w", err)
	}
	counts, patch, _ := strings.Cut(out.String(), "\x00\x00")
	cs.patch = patch
	byPath := map[string]*changeset.File{}
	for i := range cs.Files {
		byPath[cs.Files[i].Path] = &cs.Files[i]
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(counts, "\x00"), "\x00") {
		if err := parseCount(byPath, line); err != nil {
			return fmt.Errorf("count lines: %w", err)
		}
	}
	for _, f := range cs.Files {
		cs.Insertions += f.Insertions
		cs.Deletions += f.Deletions
	}
	return nil
}

// parseCount reads "added TAB deleted TAB path", with "-" for a binary file.
func parseCount(byPath map[string]*changeset.File, line string) error {
	parts := strings.SplitN(line, "\t", 3)
	if len(parts) != 3 || byPath[parts[2]] == nil {
		return fmt.Errorf("%q is not understood", line)
	}
	f := byPath[parts[2]]
	if parts[0] == "-" {
		f.Binary = true
		return nil
	}
	added, err := strconv.Atoi(parts[0])
	deleted, err2 := strconv.Atoi(parts[1])
	f.Insertions, f.Deletions = added, deleted
	return errors.Join(err, err2)
}
