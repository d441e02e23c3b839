package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// gitRepository has a packed commit and a loose blob.
type gitRepository struct {
	gittest.Repo
	packed, loose string // ids of two blobs
}

func newGitRepository(t *testing.T) gitRepository {
	t.Helper()
	r := gitRepository{Repo: gittest.New(t)}
	r.Write("check.sh", "exit 1\n")
	r.Write("other", strings.Repeat("line\n", 100))
	r.Commit("base")
	r.Git("repack", "-a", "-d", "-q")
	r.Write("loose", "loose\n")
	r.packed, r.loose = r.Git("rev-parse", "HEAD:check.sh"), r.Git("hash-object", "-w", "loose")
	return r
}

func (r gitRepository) objects(name string) string {
	return filepath.Join(r.Dir, ".git/objects", name)
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
	orPanic(os.Chmod(path, 0o644))
	orPanic(os.WriteFile(path, with, 0o644))
}

func flipped(path string) []byte {
	raw, err := os.ReadFile(path)
	orPanic(err)
	raw[len(raw)/2] ^= 1
	return raw
}

var objectChanges = []struct {
	name   string
	change func(*testing.T, gitRepository)
	want   string // how the one line begins and ends; empty: none
}{
	{"nothing", func(*testing.T, gitRepository) {}, ""},
	{"what git adds", func(t *testing.T, r gitRepository) {
		must.Write(t, filepath.Join(r.Dir, "new"), "new\n")
		r.Git("add", "-A") // which touches the pack and the object that are there
	}, ""},
	{"times of a pack and of an object", func(_ *testing.T, r gitRepository) {
		orPanic(os.Chtimes(r.pack("pack"), time.Now(), time.Unix(1, 0)))
		orPanic(os.Chtimes(r.looseFile(r.loose), time.Now(), time.Unix(1, 0)))
	}, ""},
	{"what git leaves half", func(t *testing.T, r gitRepository) {
		must.Write(t, r.objects("aa/tmp_obj_x"), "x")
		must.Write(t, r.objects("pack/tmp_pack_x"), "x")
	}, ""},
	{"the same pack in a new file", func(_ *testing.T, r gitRepository) {
		raw, err := os.ReadFile(r.pack("pack"))
		orPanic(err)
		name := r.pack("pack")
		orPanic(os.Remove(name))
		orPanic(os.WriteFile(name, raw, 0o644))
	}, ""},
	{"a loose object", func(_ *testing.T, r gitRepository) {
		overwrite(r.looseFile(r.loose), []byte(gittest.LooseBlob("other\n")))
	}, "was changed: it is another object than its name says"},
	{"a loose object that is none", func(_ *testing.T, r gitRepository) { overwrite(r.looseFile(r.loose), []byte("x")) }, "was changed: it is no object"},
	{"a loose object as a link", func(t *testing.T, r gitRepository) {
		orPanic(os.Rename(r.looseFile(r.loose), filepath.Join(r.Dir, "moved")))
		orPanic(os.Symlink(filepath.Join(r.Dir, "moved"), r.looseFile(r.loose)))
	}, "was changed"},
	{"a loose object as a pipe", func(_ *testing.T, r gitRepository) {
		orPanic(os.Remove(r.looseFile(r.loose)))
		orPanic(syscall.Mkfifo(r.looseFile(r.loose), 0o644))
	}, "was changed: it is no regular file"},
	{"a loose object that is gone", func(_ *testing.T, r gitRepository) { orPanic(os.Remove(r.looseFile(r.loose))) }, "is gone"},
	{"a loose object before a packed one", func(t *testing.T, r gitRepository) {
		must.Write(t, r.looseFile(r.packed), gittest.LooseBlob("exit 0\n"))
	}, "was changed: it is another object than its name says"},
	{"a loose object for what is to come", func(t *testing.T, r gitRepository) {
		must.Write(t, r.objects("aa/"+strings.Repeat("b", 38)), gittest.LooseBlob("exit 0\n"))
	}, "was changed: it is another object than its name says"},
	{"a pack", func(_ *testing.T, r gitRepository) { overwrite(r.pack("pack"), flipped(r.pack("pack"))) }, "was changed: its content has another sum"},
	{"an index", func(_ *testing.T, r gitRepository) { overwrite(r.pack("idx"), flipped(r.pack("idx"))) }, "was changed: its content has another sum"},
	{"a pack that is cut to nothing", func(_ *testing.T, r gitRepository) { overwrite(r.pack("pack"), nil) }, "was changed"},
	{"a new pack", func(t *testing.T, r gitRepository) { must.Write(t, r.objects("pack/pack-x.idx"), "x") }, "is new"},
	{"a new pack that is named as one left half", func(t *testing.T, r gitRepository) {
		raw, err := os.ReadFile(r.pack("idx"))
		orPanic(err)
		must.Write(t, r.objects("pack/tmp_pack_x.idx"), string(raw))
	}, "is new"},
	{"a folder of objects as a link", func(_ *testing.T, r gitRepository) {
		orPanic(os.Symlink(r.Dir, r.objects("aa")))
	}, "is new"},
	{"an index of all packs", func(_ *testing.T, r gitRepository) { r.Git("multi-pack-index", "write") }, "is new"},
}

func TestDetectsChangedObjects(t *testing.T) {
	for _, c := range objectChanges {
		for _, old := range []bool{false, true} { // files that were written long before, or just then
			t.Run(fmt.Sprintf("%s/old %t", c.name, old), func(t *testing.T) {
				t.Parallel()
				r := newGitRepository(t)
				mark := markOf(t, r.Dir)
				for path, o := range mark.objects {
					if old {
						var err error
						o.stat, _, err = statOf(path)
						orPanic(err)
						mark.objects[path] = o
					}
				}
				c.change(t, r)
				got := must.Get(mark.ChangedObjects(t.Context()))(t)
				if len(got) > 1 || c.want == "" && len(got) > 0 || c.want != "" && (len(got) == 0 || !strings.HasPrefix(got[0], ".git/objects/") || !strings.HasSuffix(got[0], " "+c.want)) {
					t.Errorf("got %q, want one that ends in %q", got, c.want)
				}
				other, err := mark.ChangedFiles(t.Context())
				if err != nil || len(other) > 0 && !slices.Equal(other, got) { // a link counts as either
					t.Errorf("besides objects: %q, %v", other, err)
				}
			})
		}
	}
}
