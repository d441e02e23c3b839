package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// hiddenFile is what was kept from commands in the folders that they may write
// to, before any of the agent ran, for a run that goes on.
const hiddenFile = record.StateFolder + "/hidden.json"

// useHidden makes the checkout leave out what is hidden in it, but for what the
// base commit tracks: what somebody named ends the run, and what is only known by
// its place is a file of the repository.
func (r *run) useHidden(found *grants.Secrets) error {
	kept := []grants.Secret{}
	for _, secret := range found.Found {
		path, tracked, err := r.tracksHidden(secret.Path)
		switch {
		case err != nil:
			return err
		case !tracked:
			kept = append(kept, secret)
		case secret.By != "":
			return hiddenTracked(secret, path)
		}
	}
	found.Found, r.hidden = kept, found
	r.leaveOutHidden()
	return r.keepHidden()
}

// leaveOutHidden tells the checkout what to leave out.
func (r *run) leaveOutHidden() {
	if r.checkout == nil {
		return
	}
	var paths []string
	for _, path := range r.hidden.Paths() {
		if inside, is := r.inCheckoutPath(path); is {
			paths = append(paths, inside)
		}
	}
	r.checkout.Hide(paths)
}

// inCheckoutPath gives a path as relative to the checkout, if it lies there.
func (r *run) inCheckoutPath(path string) (inside string, is bool) {
	inside, err := filepath.Rel(r.checkout.Root(), path)
	return filepath.ToSlash(inside), err == nil && filepath.IsLocal(inside)
}

// keepHidden writes down what is hidden, if anything is.
func (r *run) keepHidden() error {
	if r.hidden == nil || len(r.hidden.Found) == 0 {
		return nil
	}
	return r.rec.WriteJSON(hiddenFile, r.hidden)
}

// tracksHidden says whether the base commit has a path, and where.
func (r *run) tracksHidden(path string) (inside string, tracked bool, err error) {
	if r.checkout == nil {
		return "", false, nil
	}
	inside, is := r.inCheckoutPath(path)
	if !is {
		return "", false, nil
	}
	if tracked, err = r.checkout.BaseTracks(inside); err != nil {
		return "", false, fmt.Errorf("look for what is kept from commands: %w", err)
	}
	return inside, tracked, nil
}

// hiddenTracked is the outcome of a secret that is at path in the base commit.
func hiddenTracked(secret grants.Secret, path string) error {
	named, remedy := "", "take it out of the list"
	if secret.Named != secret.Path {
		named = fmt.Sprintf(" (as %s)", secret.Named)
	}
	if secret.By != grants.DeniedBy {
		remedy = "unset the variable for agent-ci"
	}
	return outcome.Stopf(outcome.InvalidInput, "deny_read_tracked",
		"%s names %s%s, which the base commit tracks: git shows it to every command, so it cannot be hidden. "+
			"If it is secret, replace the secret, since older commits keep it, and take the file out of the repository; else %s.", secret.By, path, named, remedy)
}

// hideAgain reads what was hidden when the run was cut short, before the checkout
// is looked at: what was hidden is none of its work.
func (r *run) hideAgain() error {
	raw, err := r.rec.Read(hiddenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var known grants.Secrets
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", hiddenFile, err)
	}
	if slices.Contains(known.Within, r.checkout.Root()) { // else it is of another checkout
		r.hidden = &known
		r.leaveOutHidden()
	}
	return nil
}
