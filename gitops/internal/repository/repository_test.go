package repository_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func open(t testing.TB, dir string) *repository.Repository {
	t.Helper()
	r := must.Get(repository.Open(t.Context(), dir, gittest.Program(t), t.TempDir(), ""))(t)
	t.Cleanup(func() {
		must.Is(t, nil, r.Close())
	})
	return r
}

func TestOpenRefusesNonCheckouts(t *testing.T) {
	plain := t.TempDir()
	bare := gittest.Seeded(t)
	bare.Git("clone", "-q", "--bare", ".", "../bare.git")
	for name, c := range map[string]struct {
		dir  string
		want error
	}{
		"no repository":     {plain, repository.ErrNotRepository},
		"no such folder":    {filepath.Join(plain, "none"), repository.ErrNotRepository},
		"a bare repository": {bare.Path("../bare.git"), repository.ErrBare},
		"within a bare one": {bare.Path("../bare.git/refs"), repository.ErrBare},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			must.Is(t, c.want, must.Err(repository.Open(t.Context(), c.dir, gittest.Program(t), state, "")))
			must.None(t, must.Get(os.ReadDir(state))(t), "left behind")
		})
	}
}

func TestSaysWhyThereIsNoCheckout(t *testing.T) {
	open := func(dir string) error {
		return must.Err(repository.Open(t.Context(), dir, gittest.Program(t), t.TempDir(), ""))
	}
	locked := gittest.New(t)
	gone := filepath.Join(t.TempDir(), "gone")
	must.Do(t, os.Mkdir(gone, 0o700))
	t.Chdir(gone)
	must.Do(t, os.Remove(gone))
	err := open(".")
	must.Is(t, repository.ErrNotRepository, err)
	must.Contain(t, err.Error(), "the current folder was deleted")
	if os.Geteuid() == 0 {
		return // who may read everything
	}
	must.Do(t, os.Chmod(locked.Path(".git"), 0))
	t.Cleanup(func() { must.Do(t, os.Chmod(locked.Path(".git"), 0o700)) })
	err = open(locked.Dir)
	must.Is(t, repository.ErrNotRepository, err)
	must.Contain(t, err.Error(), ".git cannot be read (permission denied)")
}

func TestOpenRefusesUnsupportedRepositories(t *testing.T) {
	for name, prepare := range map[string]func(r gittest.Repo) gittest.Repo{
		"sparse": func(r gittest.Repo) gittest.Repo {
			r.Git("sparse-checkout", "set", "src")
			return r
		},
		"sparse index": func(r gittest.Repo) gittest.Repo {
			r.Git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
			return r
		},
		"partial clone": func(r gittest.Repo) gittest.Repo {
			r.Git("config", "uploadpack.allowFilter", "true")
			r.Git("clone", "-q", "--filter=blob:none", "file://"+r.Dir, r.Path("../partial"))
			return gittest.Repo{T: r.T, Dir: r.Path("../partial")}
		},
		"sha256": func(r gittest.Repo) gittest.Repo {
			other := gittest.Repo{T: r.T, Dir: r.Path("../sha256")}
			r.Git("init", "-q", "--object-format=sha256", other.Dir)
			other.Seed()
			return other
		},
		"reftable": func(r gittest.Repo) gittest.Repo {
			r.Git("config", "core.repositoryFormatVersion", "1")
			r.Git("config", "extensions.refStorage", "reftable")
			return r
		},
		"an unknown extension": func(r gittest.Repo) gittest.Repo {
			r.Git("config", "core.repositoryFormatVersion", "1")
			r.Git("config", "extensions.fromTheFuture", "true")
			return r
		},
		"a branch whose name begins with a dash": func(r gittest.Repo) gittest.Repo {
			r.Git("update-ref", "refs/heads/-x", "HEAD")
			r.Git("symbolic-ref", "HEAD", "refs/heads/-x")
			return r
		},
		"a mistake in the configuration": func(r gittest.Repo) gittest.Repo {
			r.Write(".git/config", "[core\n")
			return r
		},
		"configuration in the checkout": func(r gittest.Repo) gittest.Repo {
			r.Write(".gitconfig", "[core]\n\tautocrlf = false\n")
			r.Git("config", "include.path", "../.gitconfig")
			return r
		},
		"configuration that could come into the checkout": func(r gittest.Repo) gittest.Repo {
			r.Git("config", "include.path", "../later")
			return r
		},
		"configuration in the checkout by a link": func(r gittest.Repo) gittest.Repo {
			r.Link(r.Path("later"), "../link")
			r.Git("config", "include.path", "../../link")
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.Seeded(t)
			r = prepare(r)
			c, err := repository.Open(t.Context(), r.Dir, gittest.Program(t), t.TempDir(), "")
			if err == nil {
				_, indexErr := c.Index(t.Context())
				_, _, headErr := c.Head()
				err = errors.Join(indexErr, headErr)
				c.Close()
			}
			var unsupported *repository.UnsupportedError
			must.Same(t, true, errors.As(err, &unsupported), err)
		})
	}
}
