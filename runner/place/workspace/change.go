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
	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Changes are what differs from the base since the snapshot.
func (w *Workspace) Changes(ctx context.Context) (change *gitops.ChangeSet, err error) {
	if !w.tree.Any(OfAgent) {
		return w.checkout.Between(ctx, w.base, w.base.Tree)
	}
	err = w.in(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) (err error) {
		change, err = c.Changes(ctx, w.begun)
		return err
	})
	return change, err
}

// LayOver puts a change into what the agent's commands see.
func (w *Workspace) LayOver(ctx context.Context, change *gitops.ChangeSet) error {
	return w.in(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error { return c.LayOver(ctx, change) })
}

// TakeChange looks at what the agent changed and keeps it in the run directory
// before anything else is done with it. leaveOut may make it smaller. The change
// set is there beside an error where that came after it.
func (w *Workspace) TakeChange(ctx context.Context, leaveOut func(context.Context, *gitops.ChangeSet) (*gitops.ChangeSet, error)) (*gitops.ChangeSet, error) {
	change, err := w.Changes(ctx)
	if err == nil {
		change, err = leaveOut(ctx, change)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, unreadable(w.root, err)
	case err != nil:
		return nil, fmt.Errorf("find what changed: %w", err)
	}
	return change, w.Keep(ctx, change, "")
}

// unreadable is the outcome of a checkout in which commands of the run have left
// nothing that may be read, or of a folder of it.
func unreadable(folder string, err error) *outcome.Stop {
	return outcome.Stopf(outcome.PolicyViolation, "change",
		"Commands of the run took the right to read %s (%v); the commands must not do that.", folder, outcome.RootCause(err)).Because(err)
}

// OpenWorkDir opens the working directory for an agent, whose work is more from
// here on than what was kept. tree is where this process finds the work tree. Before a snapshot was taken no command can have made the folder unreadable.
func (w *Workspace) OpenWorkDir(tree, path string) (*os.Root, error) {
	dir := filepath.Join(tree, filepath.FromSlash(path))
	root, err := os.OpenRoot(dir + "/") // which waits for no pipe
	if errors.Is(err, fs.ErrPermission) && w.Worked() {
		return nil, unreadable(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	w.kept = false
	return root, nil
}

// Keep writes a change set to the run directory: as a patch for people, as a pack
// for `publish`. movedTo is the commit of its base where that is not the one that
// the work began on.
func (w *Workspace) Keep(ctx context.Context, change *gitops.ChangeSet, movedTo string) error {
	diff := &clip.Head{Most: transcript.DiffBytes}
	digest, err := w.writePatch(ctx, change, diff)
	if err != nil {
		return err
	}
	if err := w.WritePack(ctx, change, record.PackFile); err != nil {
		return err
	}
	w.kept = true
	if movedTo == "" {
		w.rec.Remove(record.WorkPackFile)
	}
	return w.rec.Append(transcript.TypeChange, transcript.Change{
		TreeSHA: string(change.Tree), Files: ChangeFiles(change), Insertions: change.Insertions, Deletions: change.Deletions,
		Patch: record.PatchFile, SHA256: digest, BaseSHA: movedTo,
		Diff: diff.Lines(), DiffCut: diff.Cut(),
	})
}

// KeepWork keeps the pack of the change as it was made beside the one that follows
// the base: a run that goes on begins on its own base again.
func (w *Workspace) KeepWork() error {
	if err := w.rec.Root().Rename(record.PackFile, record.WorkPackFile); err != nil {
		return fmt.Errorf("keep %s: %w", record.PackFile, err)
	}
	return nil
}

// workPack is the file with the objects of the change as it was made.
func workPack(d *record.Directory) string {
	if d.Has(record.WorkPackFile) {
		return record.WorkPackFile
	}
	return record.PackFile
}

// WritePatch writes a change as a patch, and gives its SHA-256.
func (w *Workspace) WritePatch(ctx context.Context, change *gitops.ChangeSet) (digest string, err error) {
	return w.writePatch(ctx, change, io.Discard)
}

// writePatch writes it to more as well.
func (w *Workspace) writePatch(ctx context.Context, change *gitops.ChangeSet, more io.Writer) (digest string, err error) {
	sum := sha256.New()
	err = w.writeFile(record.PatchFile, func(f io.Writer) error {
		return w.checkout.WritePatch(ctx, change, io.MultiWriter(f, sum, more))
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// WritePack writes the objects of a change to a file of the run directory.
func (w *Workspace) WritePack(ctx context.Context, change *gitops.ChangeSet, name string) error {
	return w.writeFile(name, func(f io.Writer) error { return w.checkout.WritePack(ctx, change, f) })
}

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

// ChangeFiles are the files of a change as the transcript tells of them.
func ChangeFiles(c *gitops.ChangeSet) []changeset.File {
	files := append([]changeset.File{}, c.Files...) // never null in JSON
	for i := range files {
		files[i].Path = JSONPath(files[i].Path)
	}
	return files
}

// JSONPath is a path for JSON, which holds Unicode only: one that is not UTF-8
// is quoted like a string of Go.
func JSONPath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.Quote(path)
}

// PutBack makes protected paths of a change what they are in the base, in the
// checkout, and gives the change without them.
func (w *Workspace) PutBack(ctx context.Context, change *gitops.ChangeSet, paths []string) (*gitops.ChangeSet, error) {
	err := w.revert(ctx, change, paths)
	if obstructed := (*gitops.ObstructedError)(nil); errors.As(err, &obstructed) {
		return nil, outcome.Stopf(outcome.PolicyViolation, "change",
			"The change touches protected files (%s), which can't be restored (policy.change.protected): what was made at %s is in the way; have it removed.",
			named(paths), named(obstructed.Paths)).Because(err)
	}
	if err != nil {
		return nil, err
	}
	w.rec.Warn("protected_dropped", "Changes of protected files were left out (policy.change.protected): %s.", named(paths))
	return w.Changes(ctx)
}

// Revert makes paths of a change what they are in the base, likewise, and says nothing of it.
func (w *Workspace) Revert(ctx context.Context, change *gitops.ChangeSet, paths []string) (*gitops.ChangeSet, error) {
	if err := w.revert(ctx, change, paths); err != nil {
		return change, err
	}
	return w.Changes(ctx)
}

func (w *Workspace) revert(ctx context.Context, change *gitops.ChangeSet, paths []string) error {
	return w.in(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error { return c.Revert(ctx, change, paths) })
}

func named(paths []string) string { return strings.Join(markdown.FileNames(paths), ", ") }
