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

// hiddenFile lists the files in writable folders that were hidden before the agent started. A
// resumed run reads it.
const hiddenFile = record.StateFolder + "/hidden.json"

// HiddenFiles returns the hidden files in writable folders, or nil before ExcludeSecrets.
func (w *Workspace) HiddenFiles() *grants.Secrets { return w.hiddenFiles }

// ExcludeSecrets hides the found secrets from the checkout's changes and returns them. A secret
// that the base commit tracks is not hidden. If it was named explicitly, it ends the run; if only
// its place makes it a secret, it is treated as an ordinary file.
func (w *Workspace) ExcludeSecrets(found *grants.Secrets) (*grants.Secrets, error) {
	hidden := []grants.Secret{}
	for _, secret := range found.Found {
		path, isInside := w.relativePath(secret.Path)
		tracked := false
		if isInside {
			var err error
			if tracked, err = w.checkout.BaseTracks(path); err != nil {
				return nil, fmt.Errorf("look for what is kept from commands: %w", err)
			}
		}
		switch {
		case !tracked:
			hidden = append(hidden, secret)
		case secret.By != "":
			return nil, hiddenTracked(secret, path)
		}
	}
	found.Found, w.hiddenFiles = hidden, found
	w.excludeHidden()
	if len(hidden) == 0 {
		return found, nil
	}
	return found, w.rec.WriteJSON(hiddenFile, found) // for a resumed run
}

// excludeHidden makes the checkout ignore the hidden files in it.
func (w *Workspace) excludeHidden() {
	var paths []string
	for _, path := range w.hiddenFiles.Paths() {
		if inside, is := w.relativePath(path); is {
			paths = append(paths, inside)
		}
	}
	w.checkout.Hide(paths)
}

// roots returns the paths of the checkout and of a private work tree.
func (w *Workspace) roots() []string {
	made, _ := w.rec.FindPrivateTree()
	return []string{w.root, cmp.Or(made.Folder, w.rec.Join(record.PrivateTree))}
}

// relativePath returns a path relative to the checkout or to the private work tree, if it is in one
// of them.
func (w *Workspace) relativePath(path string) (inside string, is bool) {
	for _, root := range w.roots() {
		if inside, is := pathname.Below(root, path); is {
			return filepath.ToSlash(inside), true
		}
	}
	return "", false
}

// hiddenTracked returns the outcome for a secret that the base commit tracks, with a remedy.
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

// restoreHidden reads the files that the interrupted run hid. This comes before the checkout is
// examined, because those files are not work of the run.
func (w *Workspace) restoreHidden() error {
	var known grants.Secrets
	exists, err := w.rec.ReadJSON(hiddenFile, &known)
	if err != nil || !exists {
		return err
	}
	isOfThisCheckout := slices.ContainsFunc(w.roots(), func(root string) bool { return slices.Contains(known.Within, root) })
	if isOfThisCheckout {
		w.hiddenFiles = &known
		w.excludeHidden()
	}
	return nil
}
