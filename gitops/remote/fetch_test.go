package remote_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/remote"
)

func TestFetch(t *testing.T) {
	o := newOrigin(t)
	for _, w := range ways(t, o) {
		for _, depth := range []string{"", "--depth=1"} {
			t.Run(w.name+depth, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "clone")
				args := []string{"clone", "--quiet", "--single-branch", "--branch=main", "file://" + o.bare, dir}
				options := remote.FetchOptions{Commit: o.side, Have: []string{o.base}}
				if depth != "" {
					args = append(args[:2:2], append([]string{depth}, args[2:]...)...)
					options.Shallow = []string{o.base}
				}
				git(t, o.root, args...)
				path := filepath.Join(t.TempDir(), "fetched.pack")
				var shallow []string
				err := remote.Fetch(t.Context(), w.remote, options, func(pack io.Reader, unparented []string) error {
					shallow = unparented
					data, err := io.ReadAll(pack)
					return errors.Join(err, os.WriteFile(path, data, 0o600))
				})
				if err != nil {
					t.Fatal(err)
				}
				pack, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				gitWith(t, dir, pack, "unpack-objects", "-q")
				if got := git(t, dir, "show", o.side+":side.txt"); got != "side" {
					t.Errorf("side.txt is %q", got)
				}
				git(t, dir, "ls-tree", "-r", o.side)
				if objects := pack[11]; w.name == "http" && objects != 3 {
					t.Errorf("%d objects were sent; the commit, its tree and side.txt are enough", objects)
				}
				if len(shallow) > 0 {
					t.Errorf("commits without parents: %q", shallow)
				}
			})
		}
	}
}

func TestFetchOfWhatIsNotThere(t *testing.T) {
	o := newOrigin(t)
	for _, w := range ways(t, o) {
		t.Run(w.name, func(t *testing.T) {
			err := remote.Fetch(t.Context(), w.remote, remote.FetchOptions{Commit: strings.Repeat("1", 40)}, func(pack io.Reader, _ []string) error {
				_, err := io.Copy(io.Discard, pack)
				return err
			})
			if err == nil {
				t.Error("a commit that is not there was fetched")
			}
		})
	}
}

func TestFetchAlone(t *testing.T) {
	o := newOrigin(t)
	dir := filepath.Join(t.TempDir(), "new")
	git(t, o.root, "init", "--quiet", dir)
	err := remote.Fetch(t.Context(), serve(t, o.root).remote(), remote.FetchOptions{Commit: o.side, Alone: true}, func(pack io.Reader, shallow []string) error {
		if len(shallow) != 1 || shallow[0] != o.side {
			t.Errorf("commits without parents: %q, want %s", shallow, o.side)
		}
		data, err := io.ReadAll(pack)
		gitWith(t, dir, data, "unpack-objects", "-q")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := git(t, dir, "ls-tree", "-r", "--name-only", o.side); got != "a.txt\nd/b.txt\nside.txt" {
		t.Errorf("files: %q", got)
	}
}
