package objects_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// packedVersions returns a repository whose one pack has many versions of files, most of them as deltas.
func packedVersions(t *testing.T) gittest.Repo {
	r := gittest.New(t)
	text := strings.Repeat("a line that stays the same\n", 100)
	for i := range 8 {
		for j := range 5 {
			r.Write(fmt.Sprintf("d/%d", j), fmt.Sprintf("%s%d %d\n", text, i, j))
		}
		r.Write("large", fmt.Sprintf("%s%d", large, i))
		r.Commit("more")
	}
	r.Git("repack", "-q", "-a", "-d", "--depth=10")
	r.Git("prune-packed", "-q")
	return r
}

// packFile returns the path of a repository's only pack or index.
func packFile(r gittest.Repo, extension string) string {
	r.T.Helper()
	list := must.Get(filepath.Glob(r.Path(".git/objects/pack/*" + extension)))(r.T)
	must.Same(r.T, 1, len(list), "packs")
	return list[0]
}

func TestFindsAllObjectsOfPacks(t *testing.T) {
	r := packedVersions(t)
	for _, version := range []string{"2", "2,0x40"} { // the second has long offsets for all but the first objects
		os.Remove(packFile(r, ".idx"))
		r.Git("index-pack", "--index-version="+version, packFile(r, ".pack"))
		s := open(t, emptyStore(t), r.Path(".git"))
		for line := range strings.Lines(r.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objectsize)")) {
			id, size, _ := strings.Cut(strings.TrimSpace(line), " ")
			must.Same(t, size, fmt.Sprint(must.Get(s.Size(plumbing.NewHash(id)))(t)), id) // Size verifies the hash
		}
	}
}

func TestReportsDamagedPackIndex(t *testing.T) {
	r := packedVersions(t)
	id, path := revision(r, "HEAD:large"), packFile(r, ".idx")
	whole := must.Get(os.ReadFile(path))(t)
	for name, damage := range map[string]func(b []byte) []byte{
		"empty":          func(b []byte) []byte { return nil },
		"of version 1":   func(b []byte) []byte { return b[8:] },
		"cut in its ids": func(b []byte) []byte { return b[:8+256*4+10] },
		"cut in its offsets": func(b []byte) []byte {
			return b[:8+256*4+20*(len(b)-8-256*4-40)/28]
		},
		"a byte with fewer ids than the one before": func(b []byte) []byte { b[8+4*10] = 0xff; return b },
	} {
		must.Do(t, os.Chmod(path, 0o600))
		must.Do(t, os.WriteFile(path, damage([]byte(string(whole))), 0o600))
		_, _, err := open(t, "", r.Path(".git")).Blob(id)
		must.Fail(t, "index", err, name)
	}
}

// A repack while a store is open removes the packs that it knows.
func TestFindsObjectsAfterRepack(t *testing.T) {
	r := packedVersions(t)
	s := open(t, "", r.Path(".git"))
	must.Same(t, true, s.Has(revision(r, "HEAD")), "the commit before")
	r.Write("d/new", "new\n")
	r.Commit("new")
	r.Git("gc", "-q", "--prune=now")
	must.Same(t, true, s.Has(revision(r, "HEAD~1")), "the commit after")
	must.Same(t, "new\n", content(t, s, revision(r, "HEAD:d/new")), "a new file")
	must.Same(t, r.Git("cat-file", "-s", "HEAD~5:d/1"), fmt.Sprint(must.Get(s.Size(revision(r, "HEAD~5:d/1")))(t)), "an old file")
}

// The delta of the second version copies from before where it last copied, and then from after that.
func TestReadsLargeDeltas(t *testing.T) {
	r := gittest.New(t)
	random := rand.New(rand.NewPCG(1, 2))
	parts := make([]string, 8)
	for i := range parts {
		var part strings.Builder
		for part.Len() < 300_000 {
			fmt.Fprintf(&part, "%x\n", random.Uint64())
		}
		parts[i] = part.String()
	}
	whole, other := strings.Join(parts, ""), parts[1][:20_000]+parts[0][:20_000]+strings.Join(parts[3:], "")
	for _, version := range []string{whole, other} {
		r.Write("parts", version)
		r.Commit("a version")
	}
	r.Git("repack", "-q", "-a", "-d", "-f")
	isDelta := strings.Trim(r.GitWith(nil, []byte("HEAD:parts\n"), "cat-file", "--batch-check=%(deltabase)"), "0") != ""
	must.Same(t, true, isDelta, "the second version is packed as a delta")
	s := open(t, emptyStore(t), r.Path(".git"))
	for spec, version := range map[string]string{"HEAD~1:parts": whole, "HEAD:parts": other} {
		must.Same(t, version, content(t, s, revision(r, spec)), spec, "has another content")
	}
}

func TestOtherFilesHideNoPack(t *testing.T) {
	r := packedVersions(t)
	id := revision(r, "HEAD:d/1")
	want := r.Git("cat-file", "blob", id.String()) + "\n"
	for i := range 9 { // what git before 2.34 leaves if a gc is killed
		must.Do(t, os.Link(packFile(r, ".pack")[:len(packFile(r, ".pack"))-len(".pack")]+".idx", r.Path(fmt.Sprintf(".git/objects/pack/pack-%d.idx", i))))
	}
	r.Write(".git/objects/"+id.String()[:2]+"/"+id.String()[2:], "") // what a crash leaves
	must.Same(t, want, content(t, open(t, emptyStore(t), r.Path(".git")), id))
}

func TestRefusesRingOfDeltas(t *testing.T) {
	r := gittest.New(t)
	for i := range 2 {
		r.Write("file", strings.Repeat("a line that stays the same\n", 100)+fmt.Sprint(i))
		r.Commit("a version")
	}
	r.Git("-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d")
	id, base := revision(r, "HEAD~1:file"), revision(r, "HEAD:file")
	pack := packFile(r, ".pack")
	ring := bytes.ReplaceAll(must.Get(os.ReadFile(pack))(t), base[:], id[:]) // it is based on itself
	must.Do(t, errors.Join(os.Chmod(pack, 0o600), os.WriteFile(pack, ring, 0o600)))
	_, _, err := open(t, "", r.Path(".git")).Blob(id)
	must.Fail(t, "the base of a delta is missing", err)
}
