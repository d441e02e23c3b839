package lfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/policy/must"
)

const oid = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb" // of "abc\n"

func TestPointers(t *testing.T) {
	const head = "version https://git-lfs.github.com/spec/v1\n"
	for text, want := range map[string]struct{ is, plain bool }{
		head + "oid sha256:" + oid + "\nsize 4\n":                               {true, true},
		head + "oid sha256:" + oid + "\r\nsize 4":                               {true, true},
		head + "ext-0-x sha256:" + oid + "\noid sha256:" + oid + "\nsize 4\n":   {true, false},
		head + "oid sha256:" + oid[1:] + "\nsize 4\n":                           {},
		head + "oid sha256:../" + oid[3:] + "\nsize 4\n":                        {},
		head + "oid sha256:" + oid + "\nsize -4\n":                              {},
		head + "oid sha256:" + oid + "\nsize 4\nmore x\n":                       {},
		"oid sha256:" + oid + "\nsize 4\n":                                      {},
		"version https://example.com\noid sha256:" + oid + "\nsize 4\n":         {},
		head + "oid sha256:" + oid + "\nsize 4\n" + strings.Repeat("\n", 1<<10): {},
		"": {},
	} {
		p, plain, is := lfs.Parse([]byte(text))
		if is != want.is || is && (plain != want.plain || p.OID != oid || p.Size != 4) {
			t.Errorf("%q: %+v, %t, %t", text, p, plain, is)
		}
	}
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	shared, own := filepath.Join(dir, "shared"), filepath.Join(dir, "own")
	store := lfs.Store{OwnFolder: own, Shared: []string{shared}}
	clean := func(content string, keep bool) string {
		t.Helper()
		var out strings.Builder
		must.Do(t, store.Clean(t.Context(), strings.NewReader(content), keep, &out))
		return out.String()
	}
	smudge := func(content string) (string, error) {
		var out strings.Builder
		err := store.Smudge(t.Context(), strings.NewReader(content), &out)
		return out.String(), err
	}
	pointer := clean("abc\n", false)
	must.Is(t, fs.ErrNotExist, must.Err(os.Stat(own)), "it was kept")
	must.Same(t, pointer, must.Get(smudge(pointer))(t), "a content that is missing")
	clean("abc\n", true)
	must.Same(t, "abc\n", must.Get(smudge(pointer))(t), "a content that is kept")
	must.Same(t, "plain", must.Get(smudge("plain"))(t), "no pointer")
	long := strings.Repeat("x", 5000)
	must.Same(t, long, must.Get(smudge(clean(long, true)))(t), "a long one")
	must.Do(t, os.WriteFile(lfs.PathOf(own, oid), []byte("abd\n"), 0o600))
	if _, err := smudge(pointer); !errors.As(err, new(*lfs.DamagedError)) {
		t.Errorf("a damaged one: %v", err)
	}
	must.Is(t, lfs.ErrNoStore, (lfs.Store{}).Clean(t.Context(), strings.NewReader("abc\n"), true, &strings.Builder{}), "without a folder")
}

// Content stays below the folder that has the store, wherever links in it lead.
func TestStoreRefusesLinkedFolders(t *testing.T) {
	for _, link := range []string{"lfs", "lfs/objects", "lfs/objects/ed", "lfs/objects/ed/ea"} {
		t.Run(link, func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755), os.Symlink(elsewhere, filepath.Join(dir, link))))
			store := lfs.Store{OwnFolder: filepath.Join(dir, "lfs")}
			if err := store.Clean(t.Context(), strings.NewReader("abc\n"), true, &strings.Builder{}); !errors.As(err, new(*lfs.LinkError)) {
				t.Errorf("got %v", err)
			}
			must.None(t, must.Get(os.ReadDir(elsewhere))(t), "elsewhere")
			if left, _ := filepath.Glob(filepath.Join(dir, "lfs", "new-*")); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}
