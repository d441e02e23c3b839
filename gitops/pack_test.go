package gitops_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// packOf is a pack of some objects alone.
func packOf(r repo, objects ...string) io.Reader {
	r.T.Helper()
	list := r.Git(append([]string{"rev-parse"}, objects...)...)
	base := filepath.Join(r.T.TempDir(), "pack")
	name := r.GitWith(nil, []byte(list+"\n"), "pack-objects", "--window=0", "-q", base)
	data := must.Get(os.ReadFile(base + "-" + name + ".pack"))(r.T)
	return bytes.NewReader(data)
}

func TestReadPackReportsProblems(t *testing.T) {
	t.Parallel()
	from := newRepo(t)
	from.Write("README", "one\n")
	from.Commit("base")
	from.Link("/etc/passwd", "link")
	from.Git("update-index", "--add", "--cacheinfo", "160000,"+from.Git("rev-parse", "HEAD")+",module")
	from.Git("add", "link")
	from.Git("commit", "-q", "-m", "change")
	tree := from.Git("rev-parse", "HEAD^{tree}")
	pack := packOf(from, "HEAD^{tree}", "HEAD:link")

	r := newRepo(t)
	r.Write("README", "one\n")
	r.Commit("base")
	before := r.Files()
	cs := must.Get(r.open().ReadPack(t.Context(), pack, gitops.Tree(tree)))(t)
	must.Same(t, []string{"A link", "A module"}, nameStatus(cs), "change")
	must.Same(t, []gitops.ProblemKind{gitops.ProblemLink, gitops.ProblemSubmodule}, kinds(cs), "problems")
	must.Same(t, before, r.Files(), "work tree")
	must.Same(t, nil, r.status(), "status")
}

// The pack of a change without objects is what git would write.
func TestWritePackWithoutObjects(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("README", "one\n")
	r.Commit("base")
	empty := r.GitWith(nil, nil, "pack-objects", "-q", "--stdout")
	c := r.open()
	cs := must.Get(c.ReadPack(t.Context(), strings.NewReader(empty), gitops.Tree(r.Git("rev-parse", "HEAD^{tree}"))))(t)
	var pack bytes.Buffer
	must.Do(t, c.WritePack(t.Context(), cs, &pack))
	must.Same(t, empty, pack.String())
}

// git reads a pack of objects that are empty, stored, compressed, and read as a stream.
func TestGitReadsWrittenPack(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("README", "one\n")
	r.Commit("base")
	c := r.open()
	snap := must.Get(c.Snapshot(t.Context()))(t)
	for name, size := range map[string]int{"empty": 0, "small": 15, "sixteen": 16, "stored": 4000, "compressed": 4001, "streamed": 3 << 20} {
		r.Write("d/"+name, strings.Repeat("x", size))
	}
	cs := must.Get(c.Changes(t.Context(), snap))(t)
	var pack bytes.Buffer
	must.Do(t, c.WritePack(t.Context(), cs, &pack))
	there := newRepo(t)
	there.Write("README", "one\n")
	there.Commit("base")
	there.GitWith(nil, pack.Bytes(), "unpack-objects", "-q", "--strict")
	for _, f := range cs.Files {
		must.Same(t, f.NewID, there.GitWith(nil, []byte(there.Git("cat-file", "blob", f.NewID)), "hash-object", "--stdin"), f.Path)
	}
}

// Writing ends with its context, also within a large object.
func TestWritePackStops(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	c := r.open()
	snap := must.Get(c.Snapshot(t.Context()))(t)
	r.Write("large", strings.Repeat(rand.Text(), 1<<17))
	cs := must.Get(c.Changes(t.Context(), snap))(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := c.WritePack(ctx, cs, writerFunc(func(data []byte) (int, error) { cancel(); return len(data), nil }))
	must.Is(t, context.Canceled, err)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }
