package resolve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Repositories is a local folder of repositories that replaces a forge. It has no issues and pull requests.
type Repositories string

// Path returns the path of a repository: OWNER/REPO.git in the folder if that exists, or else OWNER/REPO.
func (r Repositories) Path(repository string) string {
	path := filepath.Join(string(r), filepath.FromSlash(repository))
	if isFolder(path + ".git") {
		return path + ".git"
	}
	return path
}

// CheckOut makes a checkout of a target in dir without copying objects. path is the PATH to find git.
func (r Repositories) CheckOut(ctx context.Context, t campaign.Target, dir, path string) error {
	m := remote.Mirror{Remote: remote.Remote{URL: r.Path(t.Repository), Path: path}, Dir: r.Path(t.Repository)}
	if inner := filepath.Join(m.Dir, ".git"); isFolder(inner) {
		m.Dir = inner
	}
	return m.CheckOut(ctx, dir, t.Base, t.SHA)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Survey answers questions about branches and commits from the local repositories.
func (r Repositories) Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error) {
	found := make([]forge.Finding, len(questions))
	for i, q := range questions {
		var err error
		if found[i], err = r.survey(ctx, q); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// survey answers one question. Without a branch it reads HEAD's. A missing repository gives a zero Finding.
func (r Repositories) survey(ctx context.Context, q forge.Question) (forge.Finding, error) {
	path := r.Path(q.Repository)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return forge.Finding{}, nil
	}
	f := forge.Finding{Found: true, Repository: q.Repository, CanWrite: true, Branch: q.Branch}
	if f.Branch == "" {
		head, err := gitops.HeadOf(path)
		if err != nil {
			return forge.Finding{}, err
		}
		f.Branch = head
	}
	tip, err := gitops.ReadTip(ctx, path, f.Branch)
	if err != nil {
		return forge.Finding{}, fmt.Errorf("read the branch %s of %s: %w", f.Branch, path, err)
	}
	if tip != nil {
		f.Tip = tip.SHA
	}
	if q.Commit != "" {
		if f.HasCommit, err = gitops.Holds(path, q.Commit); err != nil {
			return f, fmt.Errorf("look for the commit %s in %s: %w", q.Commit, path, err)
		}
	}
	return f, nil
}

// Search always returns an error: only a forge can be searched.
func (r Repositories) Search(context.Context, forge.Search, int) ([]forge.Hit, error) {
	return nil, fmt.Errorf("the folder %s cannot be searched", strings.TrimSuffix(string(r), "/"))
}
