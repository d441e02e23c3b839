package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// whereGitLies are ways in which git's folder can lie, below BASE.
var whereGitLies = []struct {
	name     string
	make     func(t *testing.T, base string) // ws is the workspace
	writable []string
	want     string // of the error; empty: it is held
}{
	{"plain", func(t *testing.T, base string) { repositoryAt(t, base, "ws/.git") }, nil, ""},
	{"none", func(t *testing.T, base string) { orPanic(os.Mkdir(filepath.Join(base, "ws"), 0o755)) }, nil, ""},
	{"a file that names a folder outside", func(t *testing.T, base string) {
		repositoryAt(t, base, "real")
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ../real\n")
	}, nil, ""},
	{"a worktree of a repository outside", func(t *testing.T, base string) {
		repositoryAt(t, base, "main/.git")
		must.Write(t, filepath.Join(base, "main/.git/worktrees/ws/commondir"), "../..\n")
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ../main/.git/worktrees/ws\n")
	}, nil, ""},
	{"a file that names a folder of the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/sub/real")
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ./sub/real\n")
	}, nil, "reached through BASE/ws/sub,"},
	{"a file that leads through a link of the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "real")
		orPanic(os.MkdirAll(filepath.Join(base, "ws"), 0o755))
		orPanic(os.Symlink("../real", filepath.Join(base, "ws/link")))
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: link\n")
	}, nil, "reached through BASE/ws/link,"},
	{"links outside that lead through the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "real")
		orPanic(os.MkdirAll(filepath.Join(base, "ws"), 0o755))
		orPanic(os.Symlink(filepath.Join(base, "ws/link"), filepath.Join(base, "first")))
		orPanic(os.Symlink("../real", filepath.Join(base, "ws/link")))
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ../first\n")
	}, nil, "reached through BASE/ws/link,"},
	{"what is shared lies in the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/common")
		repositoryAt(t, base, "real")
		must.Write(t, filepath.Join(base, "real/commondir"), "../ws/common\n")
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ../real\n")
	}, nil, "reached through BASE/ws/common,"},
	{"a link", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/real")
		orPanic(os.Symlink("real", filepath.Join(base, "ws/.git")))
	}, nil, "is a symbolic link"},
	{"objects as a link", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		orPanic(os.Rename(filepath.Join(base, "ws/.git/objects"), filepath.Join(base, "ws/objects")))
		orPanic(os.Symlink("../objects", filepath.Join(base, "ws/.git/objects")))
	}, nil, "reached through BASE/ws/objects,"},
	{"hooks as a link", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		orPanic(os.Symlink("../hooks", filepath.Join(base, "ws/.git/hooks")))
	}, nil, ""},
	{"objects that are borrowed from outside", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		must.Write(t, filepath.Join(base, "ws/.git/objects/info/alternates"), "# theirs\n../../../lent/objects\n")
	}, nil, ""},
	{"objects that are borrowed from the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		must.Write(t, filepath.Join(base, "ws/.git/objects/info/alternates"), filepath.Join(base, "lent/objects")+"\n")
		must.Write(t, filepath.Join(base, "lent/objects/info/alternates"), "../../ws/lent\n")
	}, nil, "reached through BASE/ws/lent,"},
	{"a folder in policy.writable", func(t *testing.T, base string) {
		repositoryAt(t, base, "w/real")
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ../w/real\n")
	}, []string{"w"}, "reached through BASE/w/real,"},
	{"a worktree of a repository in policy.writable", func(t *testing.T, base string) {
		repositoryAt(t, base, "main/.git")
		must.Write(t, filepath.Join(base, "main/.git/worktrees/ws/commondir"), "../..\n")
		must.Write(t, filepath.Join(base, "ws/.git"), "gitdir: ../main/.git/worktrees/ws\n")
	}, []string{"main"}, "reached through BASE/main/.git,"},
	{"a workspace right in policy.writable", func(t *testing.T, base string) { repositoryAt(t, base, "ws/.git") }, []string{"."}, ""},
}

// A git folder that commands could put another in the place of is refused, whatever
// level there is.
func TestRefusesUnprotectableGitFolders(t *testing.T) {
	for _, c := range whereGitLies {
		t.Run(c.name, func(t *testing.T) {
			base := realTempDir(t)
			c.make(t, base)
			writable := []string{filepath.Join(base, "ws")}
			for _, name := range c.writable {
				writable = append(writable, filepath.Join(base, name))
			}
			_, err := Checkout{Root: writable[0]}.Restrictions(writable, nil)
			var refused *CheckoutError
			want := strings.ReplaceAll(c.want, "BASE", base)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), want)):
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	t.Run("a workspace deep in policy.writable", func(t *testing.T) {
		base := realTempDir(t)
		repositoryAt(t, base, "deep/ws/.git")
		root := filepath.Join(base, "deep/ws")
		_, err := Checkout{Root: root}.Restrictions([]string{root, base}, nil)
		var refused *CheckoutError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "reached through "+base+"/deep,") || !strings.Contains(refused.Remedy, "narrower folders") {
			t.Errorf("got %#v", err)
		}
	})
}

func repositoryAt(t *testing.T, base, name string) {
	t.Helper()
	for _, file := range []string{"HEAD", "config", "objects/info/x", "refs/heads/main"} {
		must.Write(t, filepath.Join(base, name, file), "\n")
	}
}
