package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// loader opens the repositories of this machine for go-git's server, bare ones
// and the .git of a checkout.
type loader struct{}

func (loader) Load(endpoint *transport.Endpoint) (storer.Storer, error) {
	gitDir, err := gitDirOf(endpoint.Path)
	if err != nil {
		return nil, err
	}
	return openStorage(gitDir)
}

func gitDirOf(path string) (string, error) {
	inner := filepath.Join(path, ".git")
	info, err := os.Stat(inner)
	switch {
	case err == nil && info.IsDir():
		return inner, nil
	case err == nil:
		return "", fmt.Errorf("%s is a linked work tree; name the repository that it belongs to", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("open the repository %s: %w", path, err)
	}
	for _, part := range []string{"HEAD", "objects"} {
		if _, err := os.Stat(filepath.Join(path, part)); err != nil {
			return "", fmt.Errorf("%w: %s is not a git repository", transport.ErrRepositoryNotFound, path)
		}
	}
	return path, nil
}

// openStorage refuses what go-git would read wrongly.
func openStorage(gitDir string) (*filesystem.Storage, error) {
	storage := filesystem.NewStorage(osfs.New(gitDir, osfs.WithBoundOS()), cache.NewObjectLRUDefault())
	config, err := storage.Config()
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %s: %w", gitDir, err)
	}
	extensions := config.Raw.Section("extensions")
	if extensions.Option("refstorage") == "reftable" || extensions.Option("objectformat") == "sha256" {
		return nil, fmt.Errorf("%s uses reftable or sha256, which is not supported; use a repository with files and sha1", gitDir)
	}
	return storage, nil
}

func localUploadSession(endpoint *transport.Endpoint) (transport.UploadPackSession, error) {
	return server.NewClient(loader{}).NewUploadPackSession(endpoint, nil)
}
