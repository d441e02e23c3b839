package remote

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// loader opens the repositories of this machine for go-git's server, bare ones
// and the .git of a checkout.
type loader struct{}

func (loader) Load(endpoint *transport.Endpoint) (storer.Storer, error) {
	return openRepository(endpoint.Path)
}

func gitDirOf(path string) (string, error) {
	info, err := os.Stat(filepath.Join(path, ".git"))
	switch {
	case err == nil && !info.IsDir():
		return "", fmt.Errorf("%s is a linked work tree; name the repository that it belongs to", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("open the repository %s: %w", path, err)
	}
	l, err := repository.LayoutAt(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s is not a git repository", transport.ErrRepositoryNotFound, path)
	}
	return l.GitDir, nil
}

// openRepository refuses what go-git would read wrongly.
func openRepository(path string) (*filesystem.Storage, error) {
	gitDir, err := gitDirOf(path)
	if err != nil {
		return nil, err
	}
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

// directReceive takes a push to a repository of this machine without a git
// program. go-git's own server does not look at the old id of an update, so
// what it misses is done here: the lease, under git's lock of the ref, and the
// check that the commit's parents are there.
type directReceive struct {
	transport.ReceivePackSession // for the list of refs
	storage                      *filesystem.Storage
}

func directReceiveSession(endpoint *transport.Endpoint) (transport.ReceivePackSession, error) {
	storage, err := openRepository(endpoint.Path)
	if err != nil {
		return nil, err
	}
	listing, err := server.NewClient(loader{}).NewReceivePackSession(endpoint, nil)
	if err != nil {
		return nil, err
	}
	return directReceive{listing, storage}, nil
}

// ReceivePack writes the objects, then the one ref of req.
func (s directReceive) ReceivePack(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	command := req.Commands[0]
	status := "ok"
	if err := s.receive(ctx, command, req.Packfile); err != nil {
		if !errors.As(err, new(refusal)) {
			return nil, err
		}
		status = err.Error()
	}
	report := &packp.ReportStatus{
		UnpackStatus:    "ok",
		CommandStatuses: []*packp.CommandStatus{{ReferenceName: command.Name, Status: status}},
	}
	return report, report.Error()
}

// refusal is a push that cannot be taken, in the words of git where it has some.
type refusal string

func (r refusal) Error() string { return string(r) }

func (s directReceive) receive(ctx context.Context, command *packp.Command, pack io.Reader) error {
	if err := s.checkPlace(command.Name); err != nil {
		return err
	}
	err := packfile.UpdateObjectStorage(s.storage, regularfile.Until(ctx, pack))
	if err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return fmt.Errorf("write the objects: %w", err)
	}
	if err := s.checkConnected(command.New); err != nil {
		return err
	}
	return s.update(command)
}

// checkPlace refuses the branch that is checked out there, and a name that is
// the folder of another or below another.
func (s directReceive) checkPlace(name plumbing.ReferenceName) error {
	config, err := s.storage.Config()
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	head, err := s.storage.Reference(plumbing.HEAD)
	if err == nil && head.Target() == name && !config.Core.IsBare {
		return refusal("branch is currently checked out")
	}
	refs, err := s.storage.IterReferences()
	if err != nil {
		return fmt.Errorf("list the branches: %w", err)
	}
	return refs.ForEach(func(ref *plumbing.Reference) error {
		other := ref.Name().String()
		if strings.HasPrefix(other, name.String()+"/") || strings.HasPrefix(name.String(), other+"/") {
			return refusal(fmt.Sprintf("the branch %s stands in the way of %s", ref.Name().Short(), name.Short()))
		}
		return nil
	})
}

func (s directReceive) checkConnected(sha plumbing.Hash) error {
	commit, err := object.GetCommit(s.storage, sha)
	if err != nil {
		return refusal("missing necessary objects: " + sha.String())
	}
	needed := append([]plumbing.Hash{commit.TreeHash}, commit.ParentHashes...)
	for _, id := range needed {
		if s.storage.HasEncodedObject(id) != nil {
			return refusal("missing necessary objects: " + id.String())
		}
	}
	return nil
}

// update moves the ref as git does: under <ref>.lock, which becomes the ref.
func (s directReceive) update(command *packp.Command) error {
	root, err := os.OpenRoot(s.storage.Filesystem().Root())
	if err != nil {
		return fmt.Errorf("open the repository: %w", err)
	}
	defer root.Close()
	name := command.Name.String()
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return fmt.Errorf("make the folder of the branch: %w", err)
	}
	lock, err := root.OpenFile(name+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return refusal("another process is moving the branch: " + name + ".lock exists")
	}
	if err != nil {
		return fmt.Errorf("lock the branch: %w", err)
	}
	if err := s.writeLocked(lock, command); err != nil {
		_ = root.Remove(name + ".lock")
		return err
	}
	return root.Rename(name+".lock", name)
}

func (s directReceive) writeLocked(lock *os.File, command *packp.Command) error {
	found, err := s.storage.Reference(command.Name)
	if err != nil && !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return errors.Join(fmt.Errorf("read the branch: %w", err), lock.Close())
	}
	var now plumbing.Hash
	if found != nil {
		now = found.Hash()
	}
	if now != command.Old {
		return errors.Join(refusal("failed to update ref: it is at "+now.String()), lock.Close())
	}
	_, err = lock.WriteString(command.New.String() + "\n")
	return errors.Join(err, lock.Sync(), lock.Close())
}

// emptyPack is a packfile without objects, for a push of what is there already.
func emptyPack() io.Reader {
	header := []byte{'P', 'A', 'C', 'K', 0, 0, 0, 2, 0, 0, 0, 0}
	sum := sha1.Sum(header)
	return bytes.NewReader(append(header, sum[:]...))
}
