package publish

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// wrongPushTarget returns the error for a checkout in which git pushes to another place than this run.
func wrongPushTarget(url, setting, expected, remedy string) error {
	return outcome.Stopf(outcome.InvalidInput, "push_elsewhere", "Git would push to %.300s (%.300s), and %s; %s.", cmp.Or(url, `""`), setting, expected, remedy)
}

// requireGitPushTarget returns an error if git is configured to push elsewhere, since a person may have done
// that deliberately. If git pushes to further places, it only warns, because a pull request is in one place.
func (f Forge) requireGitPushTarget(ctx context.Context, branch string) error {
	urls, setting, err := f.Workspace.Checkout().PushesTo(ctx, branch)
	if err != nil || len(urls) == 0 {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(urls), func(url string) bool {
		return strings.EqualFold(intake.RepositoryInURL(url, f.ServerURL), f.Name())
	})
	pushesHere := len(others) < len(urls)
	switch {
	case len(others) == 0:
		return nil
	case !pushesHere:
		return wrongPushTarget(urls[0], setting, "this run pushes to "+f.Name()+" on "+f.ServerURL,
			"change that setting, or leave the change in the checkout with --publish none")
	}
	f.Record.Warn("pushed_once", "Git would push to %.300s, too (%.300s). This run pushes to %s on %s alone.", strings.Join(others, " and "), setting, f.Name(), f.ServerURL)
	return nil
}

// requireKnownOrigin returns an error if git pushes to a server that is not a known forge. The user may
// expect a push, but this run could only commit on this machine.
func (l Local) requireKnownOrigin(ctx context.Context, branch string) error {
	urls, setting, err := l.Workspace.Checkout().PushesTo(ctx, branch)
	if err != nil {
		return err
	}
	origin := l.Workspace.Checkout().Origin()
	_, originLocal := l.localPath(origin)
	for _, url := range urls {
		if _, local := l.localPath(url); !originLocal || !local {
			return wrongPushTarget(url, setting, origin+" is no repository of "+l.ServerURL+" that this run knows",
				"set repository.name, or say --publish local to commit here alone")
		}
	}
	return nil
}

// pushTarget returns where git pushes a branch. The URL is "" for nowhere. Several places are an error if one
// is local, since a run publishes one branch in one repository.
func (l Local) pushTarget(ctx context.Context, branch string) (remote.Remote, error) {
	urls, setting, err := l.Workspace.Checkout().PushesTo(ctx, branch)
	if err != nil || len(urls) == 0 {
		return remote.Remote{}, err
	}
	first, local := l.localPath(urls[0])
	for _, url := range urls[1:] {
		if path, otherLocal := l.localPath(url); (local || otherLocal) && path != first {
			return remote.Remote{}, wrongPushTarget(strings.Join(urls, " and "), setting, "this run pushes to one repository",
				"change that setting, or leave the change in the checkout with --publish none")
		}
	}
	if !local {
		first = urls[0]
	}
	return l.remote(first, ""), nil
}

// localPath resolves an address to an absolute path, as git does in the checkout. local reports whether it is
// on this machine.
func (l Local) localPath(url string) (path string, local bool) {
	path, local = remote.Remote{URL: url}.Local()
	if local && !filepath.IsAbs(path) {
		path = filepath.Join(l.Workspace.Root(), path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Clean(path), local
}
