package gitops_test

import (
	"bytes"
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

// No git is started for a change without objects, and the pack is what git would write.
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
