package workspace

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// hiddenFile lists the hidden files in writable folders before the agent's start, for a resumed
// run.
const hiddenFile = record.StateFolder + "/hidden.json"

// HiddenFiles returns the hidden files in writable folders; nil before ExcludeSecrets.
func (w *Workspace) HiddenFiles() *grants.Secrets { return w.hiddenFiles }

// ExcludeSecrets excludes the found secrets from the checkout and returns the hidden ones, which exclude
// files tracked by the base commit. A tracked secret named explicitly ends the run; one known by
// its place only is an ordinary file.
func (w *Workspace) ExcludeSecrets(found *grants.Secrets) (*grants.Secrets, error) {
	kept := []grants.Secret{}
	for _, secret := range found.Found {
		path, tracked, err := w.tracksHidden(secret.Path)
		switch {
		case err != nil:
			return nil, err
		case !tracked:
			kept = append(kept, secret)
		case secret.By != "":
			return nil, hiddenTracked(secret, path)
		}
	}
	found.Found, w.hiddenFiles = kept, found
	w.excludeHidden()
	return found, w.saveHidden()
}

func (w *Workspace) excludeHidden() {
	var paths []string
	for _, path := range w.hiddenFiles.Paths() {
		if inside, is := w.relativePath(path); is {
			paths = append(paths, inside)
		}
	}
	w.checkout.Hide(paths)
}

// roots returns the checkout, and a work tree elsewhere.
func (w *Workspace) roots() []string {
	made, _ := w.rec.MadeTree()
	return []string{w.root, cmp.Or(made.Folder, w.rec.Join(record.PrivateTree))}
}

// relativePath returns a path relative to the checkout, if it is there or in a copy.
func (w *Workspace) relativePath(path string) (inside string, is bool) {
	for _, root := range w.roots() {
		if inside, is := pathname.Below(root, path); is {
			return filepath.ToSlash(inside), true
		}
	}
	return "", false
}

func (w *Workspace) saveHidden() error {
	if w.hiddenFiles == nil || len(w.hiddenFiles.Found) == 0 {
		return nil
	}
	return w.rec.WriteJSON(hiddenFile, w.hiddenFiles)
}

// tracksHidden reports whether the base commit has a path, and where.
func (w *Workspace) tracksHidden(path string) (inside string, tracked bool, err error) {
	inside, is := w.relativePath(path)
	if !is {
		return "", false, nil
	}
	if tracked, err = w.checkout.BaseTracks(inside); err != nil {
		return "", false, fmt.Errorf("look for what is kept from commands: %w", err)
	}
	return inside, tracked, nil
}

func hiddenTracked(secret grants.Secret, path string) error {
	named, remedy := "", "take it out of the list"
	if secret.Named != secret.Path {
		named = fmt.Sprintf(" (as %s)", secret.Named)
	}
	switch {
	case strings.HasPrefix(secret.By, grants.SecretBy):
		remedy = "take the secret out of the job"
	case secret.By != grants.DeniedBy:
		remedy = "unset the variable for agent-ci"
	}
	return outcome.Stopf(outcome.InvalidInput, "deny_read_tracked",
		"%s names %s%s, which the base commit tracks: git shows it to every command, so agent-ci cannot hide it. "+
			"If it is secret, replace the secret (older commits keep it), and remove the file from the repository; else %s.", secret.By, path, named, remedy)
}

// restoreHidden reads the files hidden by the interrupted run before the checkout is examined, because
// they are no work of the run.
func (w *Workspace) restoreHidden() error {
	var known grants.Secrets
	there, err := w.rec.ReadJSON(hiddenFile, &known)
	if err == nil && there && slices.ContainsFunc(w.roots(), func(root string) bool { return slices.Contains(known.Within, root) }) { // else it is of another checkout
		w.hiddenFiles = &known
		w.excludeHidden()
	}
	return err
}
