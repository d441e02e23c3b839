package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Changes returns what the agent changed since the snapshot, as a change to apply to the base. Without
// changes it is an empty change set.
func (w *Workspace) Changes(ctx context.Context) (change *gitops.ChangeSet, err error) {
	if !w.tree.HasChanges(OfAgent) {
		return w.checkout.ChangeBetween(ctx, w.base, w.base.Tree)
	}
	err = w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) (err error) {
		change, err = c.Changes(ctx, w.snapshots.work)
		return err
	})
	return change, err
}

// ApplyChange writes a change to the agent's work tree.
func (w *Workspace) ApplyChange(ctx context.Context, change *gitops.ChangeSet) error {
	return w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error { return c.ApplyChange(ctx, change) })
}

// TakeChange returns the agent's change after saving it in the run directory. leaveOut may remove
// files from it first. If saving fails, TakeChange returns the change with the error.
func (w *Workspace) TakeChange(ctx context.Context, leaveOut func(context.Context, *gitops.ChangeSet) (*gitops.ChangeSet, error)) (*gitops.ChangeSet, error) {
	change, err := w.Changes(ctx)
	if err == nil {
		change, err = leaveOut(ctx, change)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, unreadableError(w.root, err)
	case err != nil:
		return nil, fmt.Errorf("find what changed: %w", err)
	}
	return change, w.SaveChange(ctx, change, "")
}

// unreadableError returns the outcome for a checkout or folder that the run's commands made unreadable.
func unreadableError(folder string, err error) *outcome.Stop {
	return outcome.Stopf(outcome.PolicyViolation, "change",
		"Commands removed the permission to read %s (%v); they must not do that.", folder, outcome.WithoutPath(err)).Because(err)
}

// OpenWorkDir opens the agent's working directory: the folder path in tree. tree is the work tree's
// path for this process. From now on the work may differ from the saved change. A permission error
// is the commands' fault only if commands have run.
func (w *Workspace) OpenWorkDir(tree, path string) (*os.Root, error) {
	dir := filepath.Join(tree, filepath.FromSlash(path))
	root, err := os.OpenRoot(dir + "/") // the slash fails on a named pipe instead of waiting for a writer
	if errors.Is(err, fs.ErrPermission) && w.CommandsRan() {
		return nil, unreadableError(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	w.saved = false
	return root, nil
}

// SaveChange writes a change set to the run directory: as a patch for people, and as a pack for
// `publish`. movedTo is the commit to which the base moved, or "".
func (w *Workspace) SaveChange(ctx context.Context, change *gitops.ChangeSet, movedTo string) error {
	kept, err := w.WritePatch(ctx, change, movedTo)
	if err != nil {
		return err
	}
	if err := w.WritePack(ctx, change, record.PackFile); err != nil {
		return err
	}
	w.saved = true
	if movedTo == "" {
		w.rec.Remove(record.WorkPackFile)
	}
	return w.rec.Append(kept)
}

// SaveOriginalPack saves the pack of the original change before the pack of the rebased change
// replaces it. A resumed run needs the original, because it starts on its own base.
func (w *Workspace) SaveOriginalPack() error {
	if err := w.rec.Root().Rename(record.PackFile, record.WorkPackFile); err != nil {
		return fmt.Errorf("keep %s: %w", record.PackFile, err)
	}
	return nil
}

// workPack returns the name of the file with the objects of the original change.
func workPack(d *record.Directory) string {
	if d.Has(record.WorkPackFile) {
		return record.WorkPackFile
	}
	return record.PackFile
}

// WritePatch writes a change as a patch and returns its event. movedTo is as in SaveChange.
func (w *Workspace) WritePatch(ctx context.Context, change *gitops.ChangeSet, movedTo string) (transcript.Change, error) {
	sum, diff := sha256.New(), &clip.Head{Limit: transcript.DiffBytes}
	err := w.writeFile(record.PatchFile, func(f io.Writer) error {
		return w.checkout.WritePatch(ctx, change, io.MultiWriter(f, sum, diff))
	})
	return transcript.Change{
		TreeSHA: string(change.Tree), Files: ChangeFiles(change), Insertions: change.Insertions, Deletions: change.Deletions,
		Patch: record.PatchFile, SHA256: hex.EncodeToString(sum.Sum(nil)), BaseSHA: movedTo,
		Diff: diff.Lines(), DiffCut: diff.Truncated(),
	}, err
}

// WritePack writes the objects of a change to a file of the run directory.
func (w *Workspace) WritePack(ctx context.Context, change *gitops.ChangeSet, name string) error {
	return w.writeFile(name, func(f io.Writer) error { return w.checkout.WritePack(ctx, change, f) })
}

// writeFile creates a file of the run directory and writes it.
func (w *Workspace) writeFile(name string, write func(io.Writer) error) error {
	f, err := w.rec.Create(name)
	if err == nil {
		err = errors.Join(write(f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// ChangeFiles returns the files of a change, with paths fit for JSON.
func ChangeFiles(c *gitops.ChangeSet) []changeset.File {
	files := append([]changeset.File{}, c.Files...) // JSON gets [] instead of null
	for i := range files {
		files[i].Path = JSONPath(files[i].Path)
	}
	return files
}

// JSONPath returns a path for JSON. A path that is not UTF-8 is quoted as a Go string.
func JSONPath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.Quote(path)
}

// RevertProtected reverts the changes of protected paths in the work tree and warns. It returns the
// remaining change.
func (w *Workspace) RevertProtected(ctx context.Context, change *gitops.ChangeSet, paths []string) (*gitops.ChangeSet, error) {
	err := w.revert(ctx, change, paths)
	if obstructed := (*gitops.ObstructedError)(nil); errors.As(err, &obstructed) {
		return nil, outcome.Stopf(outcome.PolicyViolation, "change",
			"The change touches protected files (%s), which can't be restored (policy.change.protected): what was made at %s is in the way; let the agent remove it.",
			listPaths(paths), listPaths(obstructed.Paths)).Because(err)
	}
	if err != nil {
		return nil, err
	}
	w.rec.Warn("protected_dropped", "Changes of protected files were left out (policy.change.protected): %s.", listPaths(paths))
	return w.Changes(ctx)
}

// Revert is like RevertProtected, without a warning. With an error it returns change itself.
func (w *Workspace) Revert(ctx context.Context, change *gitops.ChangeSet, paths []string) (*gitops.ChangeSet, error) {
	if err := w.revert(ctx, change, paths); err != nil {
		return change, err
	}
	return w.Changes(ctx)
}

func (w *Workspace) revert(ctx context.Context, change *gitops.ChangeSet, paths []string) error {
	return w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error { return c.Revert(ctx, change, paths) })
}

func listPaths(paths []string) string { return strings.Join(markdown.FileNames(paths), ", ") }
