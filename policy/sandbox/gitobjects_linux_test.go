package sandbox

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gitRepository has a packed commit and a loose blob.
type gitRepository struct {
	dir, packed, loose string // folder, and ids of two blobs
}

func newGitRepository(t *testing.T) gitRepository {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(err)
	r := gitRepository{dir: dir}
	r.git("init", "-q", "-b", "main")
	put(t, filepath.Join(dir, "check.sh"), "exit 1\n", 0o644)
	put(t, filepath.Join(dir, "other"), strings.Repeat("line\n", 100), 0o644)
	r.git("add", "-A")
	r.git("-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "base")
	r.git("repack", "-a", "-d", "-q")
	put(t, filepath.Join(dir, "loose"), "loose\n", 0o644)
	r.packed, r.loose = r.git("rev-parse", "HEAD:check.sh"), r.git("hash-object", "-w", "loose")
	return r
}

func (r gitRepository) git(args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("git %v: %v: %s", args, err, out))
	}
	return strings.TrimSpace(string(out))
}

func (r gitRepository) objects(name string) string {
	return filepath.Join(r.dir, ".git/objects", name)
}

func (r gitRepository) pack(extension string) string {
	found, err := filepath.Glob(r.objects("pack/*." + extension))
	if err != nil || len(found) != 1 {
		panic(fmt.Sprint(found, err))
	}
	return found[0]
}

func (r gitRepository) looseFile(id string) string { return r.objects(id[:2] + "/" + id[2:]) }

// overwrite writes a file that is there in another way.
func overwrite(path string, with []byte) {
	must(os.Chmod(path, 0o644))
	must(os.WriteFile(path, with, 0o644))
}

func flipped(path string) []byte {
	raw, err := os.ReadFile(path)
	must(err)
	raw[len(raw)/2] ^= 1
	return raw
}

func looseBlob(content string) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := fmt.Fprintf(z, "blob %d\x00%s", len(content), content)
	must(errors.Join(err, z.Close()))
	return b.Bytes()
}

var objectChanges = []struct {
	name   string
	change func(*testing.T, gitRepository)
	want   string // how the one line begins and ends; empty: none
}{
	{"nothing", func(*testing.T, gitRepository) {}, ""},
	{"what git adds", func(t *testing.T, r gitRepository) {
		put(t, filepath.Join(r.dir, "new"), "new\n", 0o644)
		r.git("add", "-A") // which touches the pack and the object that are there
	}, ""},
	{"times of a pack and of an object", func(_ *testing.T, r gitRepository) {
		must(os.Chtimes(r.pack("pack"), time.Now(), time.Unix(1, 0)))
		must(os.Chtimes(r.looseFile(r.loose), time.Now(), time.Unix(1, 0)))
	}, ""},
	{"what git leaves half", func(t *testing.T, r gitRepository) {
		put(t, r.objects("aa/tmp_obj_x"), "x", 0o644)
		put(t, r.objects("pack/tmp_pack_x"), "x", 0o644)
	}, ""},
	{"the same pack in a new file", func(_ *testing.T, r gitRepository) {
		raw, err := os.ReadFile(r.pack("pack"))
		must(err)
		name := r.pack("pack")
		must(os.Remove(name))
		must(os.WriteFile(name, raw, 0o644))
	}, ""},
	{"a loose object", func(_ *testing.T, r gitRepository) { overwrite(r.looseFile(r.loose), looseBlob("other\n")) }, "was changed: it is another object than its name says"},
	{"a loose object that is none", func(_ *testing.T, r gitRepository) { overwrite(r.looseFile(r.loose), []byte("x")) }, "was changed: it is no object"},
	{"a loose object as a link", func(t *testing.T, r gitRepository) {
		must(os.Rename(r.looseFile(r.loose), filepath.Join(r.dir, "moved")))
		must(os.Symlink(filepath.Join(r.dir, "moved"), r.looseFile(r.loose)))
	}, "was changed"},
	{"a loose object as a pipe", func(_ *testing.T, r gitRepository) {
		must(os.Remove(r.looseFile(r.loose)))
		must(syscall.Mkfifo(r.looseFile(r.loose), 0o644))
	}, "was changed: it is no regular file"},
	{"a loose object that is gone", func(_ *testing.T, r gitRepository) { must(os.Remove(r.looseFile(r.loose))) }, "is gone"},
	{"a loose object before a packed one", func(t *testing.T, r gitRepository) {
		put(t, r.looseFile(r.packed), string(looseBlob("exit 0\n")), 0o644)
	}, "was changed: it is another object than its name says"},
	{"a loose object for what is to come", func(t *testing.T, r gitRepository) {
		put(t, r.objects("aa/"+strings.Repeat("b", 38)), string(looseBlob("exit 0\n")), 0o644)
	}, "was changed: it is another object than its name says"},
	{"a pack", func(_ *testing.T, r gitRepository) { overwrite(r.pack("pack"), flipped(r.pack("pack"))) }, "was changed: its content has another sum"},
	{"an index", func(_ *testing.T, r gitRepository) { overwrite(r.pack("idx"), flipped(r.pack("idx"))) }, "was changed: its content has another sum"},
	{"a pack that is cut to nothing", func(_ *testing.T, r gitRepository) { overwrite(r.pack("pack"), nil) }, "was changed"},
	{"a new pack", func(t *testing.T, r gitRepository) { put(t, r.objects("pack/pack-x.idx"), "x", 0o644) }, "is new"},
	{"a new pack that is named as one left half", func(t *testing.T, r gitRepository) {
		raw, err := os.ReadFile(r.pack("idx"))
		must(err)
		put(t, r.objects("pack/tmp_pack_x.idx"), string(raw), 0o644)
	}, "is new"},
	{"a folder of objects as a link", func(_ *testing.T, r gitRepository) {
		must(os.Symlink(r.dir, r.objects("aa")))
	}, "is new"},
	{"an index of all packs", func(_ *testing.T, r gitRepository) { r.git("multi-pack-index", "write") }, "is new"},
}

func TestObjectsThatCommandsChanged(t *testing.T) {
	for _, c := range objectChanges {
		for _, old := range []bool{false, true} { // files that were written long before, or just then
			t.Run(fmt.Sprintf("%s/old %t", c.name, old), func(t *testing.T) {
				t.Parallel()
				r := newGitRepository(t)
				mark := kept(t, r.dir)
				for path, o := range mark.Objects {
					if old {
						var err error
						o.Stat, err = statOf(path)
						must(err)
						mark.Objects[path] = o
					}
				}
				c.change(t, r)
				got, err := mark.ChangedObjects(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(got) > 1 || c.want == "" && len(got) > 0 || c.want != "" && (len(got) == 0 || !strings.HasPrefix(got[0], ".git/objects/") || !strings.HasSuffix(got[0], " "+c.want)) {
					t.Errorf("got %q, want one that ends in %q", got, c.want)
				}
				other, err := mark.Changed(t.Context())
				if err != nil || len(other) > 0 && !slices.Equal(other, got) { // a link counts as either
					t.Errorf("besides objects: %q, %v", other, err)
				}
			})
		}
	}
}

func TestObjectsAreComparedNoLongerThanAsked(t *testing.T) {
	r := newGitRepository(t)
	mark := kept(t, r.dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := mark.ChangedObjects(ctx); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// whereGitLies are ways in which git's folder can lie, below BASE.
var whereGitLies = []struct {
	name     string
	make     func(t *testing.T, base string) // ws is the workspace
	writable []string
	want     string // of the error; empty: it is held
}{
	{"plain", func(t *testing.T, base string) { repositoryAt(t, base, "ws/.git") }, nil, ""},
	{"none", func(t *testing.T, base string) { must(os.Mkdir(filepath.Join(base, "ws"), 0o755)) }, nil, ""},
	{"a file that names a folder outside", func(t *testing.T, base string) {
		repositoryAt(t, base, "real")
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ../real\n", 0o644)
	}, nil, ""},
	{"a worktree of a repository outside", func(t *testing.T, base string) {
		repositoryAt(t, base, "main/.git")
		put(t, filepath.Join(base, "main/.git/worktrees/ws/commondir"), "../..\n", 0o644)
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ../main/.git/worktrees/ws\n", 0o644)
	}, nil, ""},
	{"a file that names a folder of the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/sub/real")
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ./sub/real\n", 0o644)
	}, nil, "reached through BASE/ws/sub,"},
	{"a file that leads through a link of the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "real")
		must(os.MkdirAll(filepath.Join(base, "ws"), 0o755))
		must(os.Symlink("../real", filepath.Join(base, "ws/link")))
		put(t, filepath.Join(base, "ws/.git"), "gitdir: link\n", 0o644)
	}, nil, "reached through BASE/ws/link,"},
	{"links outside that lead through the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "real")
		must(os.MkdirAll(filepath.Join(base, "ws"), 0o755))
		must(os.Symlink(filepath.Join(base, "ws/link"), filepath.Join(base, "first")))
		must(os.Symlink("../real", filepath.Join(base, "ws/link")))
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ../first\n", 0o644)
	}, nil, "reached through BASE/ws/link,"},
	{"what is shared lies in the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/common")
		repositoryAt(t, base, "real")
		put(t, filepath.Join(base, "real/commondir"), "../ws/common\n", 0o644)
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ../real\n", 0o644)
	}, nil, "reached through BASE/ws/common,"},
	{"a link", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/real")
		must(os.Symlink("real", filepath.Join(base, "ws/.git")))
	}, nil, "is a symbolic link"},
	{"objects as a link", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		must(os.Rename(filepath.Join(base, "ws/.git/objects"), filepath.Join(base, "ws/objects")))
		must(os.Symlink("../objects", filepath.Join(base, "ws/.git/objects")))
	}, nil, "reached through BASE/ws/objects,"},
	{"hooks as a link", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		must(os.Symlink("../hooks", filepath.Join(base, "ws/.git/hooks")))
	}, nil, ""},
	{"objects that are borrowed from outside", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		put(t, filepath.Join(base, "ws/.git/objects/info/alternates"), "# theirs\n../../../lent/objects\n", 0o644)
	}, nil, ""},
	{"objects that are borrowed from the workspace", func(t *testing.T, base string) {
		repositoryAt(t, base, "ws/.git")
		put(t, filepath.Join(base, "ws/.git/objects/info/alternates"), filepath.Join(base, "lent/objects")+"\n", 0o644)
		put(t, filepath.Join(base, "lent/objects/info/alternates"), "../../ws/lent\n", 0o644)
	}, nil, "reached through BASE/ws/lent,"},
	{"a folder in policy.writable", func(t *testing.T, base string) {
		repositoryAt(t, base, "w/real")
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ../w/real\n", 0o644)
	}, []string{"w"}, "reached through BASE/w/real,"},
	{"a worktree of a repository in policy.writable", func(t *testing.T, base string) {
		repositoryAt(t, base, "main/.git")
		put(t, filepath.Join(base, "main/.git/worktrees/ws/commondir"), "../..\n", 0o644)
		put(t, filepath.Join(base, "ws/.git"), "gitdir: ../main/.git/worktrees/ws\n", 0o644)
	}, []string{"main"}, "reached through BASE/main/.git,"},
	{"a workspace right in policy.writable", func(t *testing.T, base string) { repositoryAt(t, base, "ws/.git") }, []string{"."}, ""},
}

// A git folder that commands could put another in the place of is refused, whatever
// level there is.
func TestGitFoldersThatCanNotBeHeld(t *testing.T) {
	for _, c := range whereGitLies {
		t.Run(c.name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			must(err)
			c.make(t, base)
			o := Options{Mode: WorkspaceWrite, Workspace: filepath.Join(base, "ws"), Scratch: t.TempDir()}
			for _, name := range c.writable {
				o.Writable = append(o.Writable, filepath.Join(base, name))
			}
			_, err = newPlan(o)
			var checkout *CheckoutError
			want := strings.ReplaceAll(c.want, "BASE", base)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!errors.As(err, &checkout) || !strings.Contains(err.Error(), want)):
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	t.Run("a workspace deep in policy.writable", func(t *testing.T) {
		base, err := filepath.EvalSymlinks(t.TempDir())
		must(err)
		repositoryAt(t, base, "deep/ws/.git")
		_, err = newPlan(Options{Mode: WorkspaceWrite, Workspace: filepath.Join(base, "deep/ws"), Writable: []string{base}, Scratch: t.TempDir()})
		var checkout *CheckoutError
		if !errors.As(err, &checkout) || !strings.Contains(err.Error(), "reached through "+base+"/deep,") || !strings.Contains(checkout.Remedy, "narrower folders") {
			t.Errorf("got %#v", err)
		}
	})
}

func repositoryAt(t *testing.T, base, name string) {
	t.Helper()
	for _, file := range []string{"HEAD", "config", "objects/info/x", "refs/heads/main"} {
		put(t, filepath.Join(base, name, file), "\n", 0o644)
	}
}
