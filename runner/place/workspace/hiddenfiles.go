package workspace

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// hiddenFile tells a run that goes on what was hidden from commands, in the folders
// that they may write to, before the agent began.
const hiddenFile = record.StateFolder + "/hidden.json"

// Hidden is what is kept from commands, where they may write; nil until LeaveOut.
func (w *Workspace) Hidden() *grants.Secrets { return w.hidden }

// LeaveOut makes the checkout leave out what was found to be hidden in it, and gives
// what is hidden: not what the base commit tracks. Of that, what somebody named ends
// the run, and what is only known by its place is a file of the repository.
func (w *Workspace) LeaveOut(found *grants.Secrets) (*grants.Secrets, error) {
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
	found.Found, w.hidden = kept, found
	w.leaveOutHidden()
	return found, w.keepHidden()
}

func (w *Workspace) leaveOutHidden() {
	var paths []string
	for _, path := range w.hidden.Paths() {
		if inside, is := w.inside(path); is {
			paths = append(paths, inside)
		}
	}
	w.checkout.Hide(paths)
}

// roots are the checkout and the work tree, as far as that lies elsewhere.
func (w *Workspace) roots() []string {
	made, _ := w.rec.MadeTree()
	return []string{w.root, cmp.Or(made.Folder, w.rec.Join(record.PrivateTree))}
}

// inside gives a path as relative to the checkout, if it lies there or in a copy.
func (w *Workspace) inside(path string) (inside string, is bool) {
	for _, root := range w.roots() {
		if inside, is := pathname.Below(root, path); is {
			return filepath.ToSlash(inside), true
		}
	}
	return "", false
}

func (w *Workspace) keepHidden() error {
	if w.hidden == nil || len(w.hidden.Found) == 0 {
		return nil
	}
	return w.rec.WriteJSON(hiddenFile, w.hidden)
}

// tracksHidden says whether the base commit has a path, and where.
func (w *Workspace) tracksHidden(path string) (inside string, tracked bool, err error) {
	inside, is := w.inside(path)
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

// hideAgain reads what was hidden when the run was cut short. It comes before the
// checkout is looked at: what was hidden is no work of the run.
func (w *Workspace) hideAgain() error {
	var known grants.Secrets
	there, err := w.rec.ReadJSON(hiddenFile, &known)
	if err == nil && there && slices.ContainsFunc(w.roots(), func(root string) bool { return slices.Contains(known.Within, root) }) { // else it is of another checkout
		w.hidden = &known
		w.leaveOutHidden()
	}
	return err
}
