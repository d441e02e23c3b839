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

// Repositories is a local folder with repositories instead of a forge, without issues and pull
// requests.
type Repositories string

// Path returns a repository's path: OWNER/REPO.git in the folder, or OWNER/REPO.
func (r Repositories) Path(repository string) string {
	path := filepath.Join(string(r), filepath.FromSlash(repository))
	if isFolder(path + ".git") {
		return path + ".git"
	}
	return path
}

// CheckOut makes a checkout of a target that reads the repository's objects in place. path is the
// PATH for git.
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

// Survey reads the repositories' branches.
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

// survey reads the branch of a question, or the one that HEAD names. A repository that is missing is a zero Finding.
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

// Search is for a forge alone. A campaign file with a folder has no queries.
func (r Repositories) Search(context.Context, forge.Search, int) ([]forge.Hit, error) {
	return nil, fmt.Errorf("the folder %s cannot be searched", strings.TrimSuffix(string(r), "/"))
}
