package publish

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// pushesAsGit refuses a run that would push elsewhere than git does by its own settings, which
// a person may have made to keep pushes away. to is where the run pushes, for a person; same
// says whether an address is that place.
func (m Means) pushesAsGit(to string, same func(url string) bool, branches ...string) error {
	for _, at := range m.Workspace.Checkout().PushURLs(branches...) {
		if !same(at.URL) {
			return pushElsewhere(at, "this run pushes to "+to, "change that setting, or leave the change in the checkout with --publish none")
		}
	}
	return nil
}

func pushElsewhere(at gitops.PushURL, but, remedy string) error {
	return outcome.Stopf(outcome.InvalidInput, "push_elsewhere", "Git would push to %.300s (%.300s), and %s; %s.", cmp.Or(at.URL, `""`), at.Setting, but, remedy)
}

func (f Forge) pushesAsGit(branches ...string) error {
	same := func(url string) bool { return strings.EqualFold(intake.NameInURL(url, f.ServerURL), f.Repository) }
	return f.Means.pushesAsGit(fmt.Sprintf("%s on %s", f.Repository, f.ServerURL), same, branches...)
}

func (l Local) pushesAsGit(branches ...string) error {
	to, local := l.path(l.Workspace.Checkout().Origin())
	if !local { // nothing is pushed
		return nil
	}
	same := func(url string) bool {
		path, local := l.path(url)
		return local && resolved(path) == resolved(to)
	}
	return l.Means.pushesAsGit(to, same, branches...)
}

// KnowsOrigin refuses a run that would only commit here although git would push to a server,
// since the address of origin does not say which repository of the forge it is.
func (l Local) KnowsOrigin() error {
	origin := l.Workspace.Checkout().Origin()
	_, here := l.path(origin)
	for _, at := range l.Workspace.Checkout().PushURLs() {
		if _, local := l.path(at.URL); !here || !local {
			return pushElsewhere(at, fmt.Sprintf("%s is no repository of %s that this run knows", origin, l.ServerURL),
				"set repository.name, or say --publish local to commit here alone")
		}
	}
	return nil
}

// resolved is a path without links, as far as it is there.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// path is the absolute path that an address names, as git reads it in the checkout; local says
// whether it is one on this machine.
func (l Local) path(url string) (path string, local bool) {
	path, local = remote.Remote{URL: url}.Local()
	if local && !filepath.IsAbs(path) {
		path = filepath.Join(l.Workspace.Root(), path)
	}
	return filepath.Clean(path), local
}
