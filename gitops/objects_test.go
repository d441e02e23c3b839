package gitops_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func revision(r repo, spec string) string { return r.Git("rev-parse", spec) }

func isDamaged(t *testing.T, what string, err error, id string) {
	t.Helper()
	var damaged *gitops.ObjectError
	if !errors.As(err, &damaged) || damaged.ID != id {
		t.Errorf("%s: %v, want an error about object %s", what, err, id)
	}
}

// Whoever reads an object gets what its id says, or nothing.
func TestRefusesObjectsWithWrongIDs(t *testing.T) {
	t.Parallel()
	small, large := "the key is hunter22\n", strings.Repeat("hunter22\n", 300_000)
	for _, content := range []string{small, large} {
		r := newRepo(t)
		r.Git("config", "filter.caps.clean", "cat") // else git writes fresh trees, and hashes nothing
		r.Write("bin/run.sh", "#!/bin/sh\nexit 1\n")
		r.Write("other", "o\n")
		r.Commit("base")
		base, id := revision(r, "HEAD"), revision(r, "HEAD:bin/run.sh")
		r.Git("mv", "bin/run.sh", "moved.sh")
		r.Commit("moved")
		moved := gitops.Tree(revision(r, "HEAD^{tree}"))
		r.Git("checkout", "-q", "HEAD~1")
		c := r.open()
		cs, err := c.ChangeBetween(t.Context(), gitops.Base{SHA: base, Tree: gitops.Tree(revision(r, "HEAD^{tree}"))}, moved)
		must.Do(t, err)
		r.Plant(".git", id, content)
		c = r.open() // which has read nothing yet
		_, err = c.ReadBase("bin/run.sh", 1<<30)
		isDamaged(t, "a file of the base", err, id)
		dir := filepath.Join(t.TempDir(), "fresh")
		isDamaged(t, "a fresh tree", c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: dir, TreeForCommands: gitops.TreeForCommands{Tree: cs.Base.Tree}}), id)
		must.Fail(t, "", must.Err(os.ReadFile(filepath.Join(dir, "bin/run.sh"))), "the fresh tree")
		_, _, err = c.Blob(id)
		isDamaged(t, "a blob", err, id)
		var pack bytes.Buffer
		isDamaged(t, "a pack", c.WritePack(t.Context(), cs, &pack), id)
		if bytes.Contains(pack.Bytes(), []byte("hunter22")) || pack.Len() > 200 {
			t.Errorf("%d bytes of a pack were written", pack.Len())
		}
	}
}

// An index of a pack says where in it an object is; one that was rewritten names
// another.
func TestDetectsIndexNamingOtherObject(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("check.sh", "exit 1\n")
	r.Write("evil.sh", "exit 0\n")
	r.Commit("base")
	r.Git("gc", "-q")
	check, evil := revision(r, "HEAD:check.sh"), revision(r, "HEAD:evil.sh")
	swapOffsets(t, r, check, evil)
	must.Contain(t, r.Git("show", "HEAD:check.sh"), "exit 0")
	_, err := r.open().ReadBase("check.sh", 100)
	isDamaged(t, "a file of the base", err, check)
}

// swapOffsets makes each of two ids of the pack's index name what the other is.
func swapOffsets(t *testing.T, r repo, a, b string) {
	t.Helper()
	list, err := filepath.Glob(r.Path(".git/objects/pack/*.idx"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	idx := must.Get(os.ReadFile(list[0]))(t)
	n := int(idx[8+255*4+3]) // few objects
	place := func(id string) []byte {
		raw := must.Get(hex.DecodeString(id))(t)
		names := 8 + 256*4
		at := bytes.Index(idx[names:], raw) / 20
		offsets := names + n*(20+4)
		return idx[offsets+4*at : offsets+4*at+4]
	}
	first, second := place(a), place(b)
	kept := bytes.Clone(first)
	copy(first, second)
	copy(second, kept)
	sum := sha1.Sum(idx[:len(idx)-20])
	copy(idx[len(idx)-20:], sum[:])
	must.Do(t, os.Chmod(list[0], 0o644))
	must.Do(t, os.WriteFile(list[0], idx, 0o644))
	r.Remove(".git/objects/pack/" + strings.TrimSuffix(filepath.Base(list[0]), ".idx") + ".rev")
}

// What somebody put under the id of a content to come is not taken for it: not
// in the change, and not in what the next user of the checkout finds.
func TestIgnoresPlantedObject(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	c := r.open()
	snap := snapshot(t, c)
	r.Write("new.sh", "echo fine\n")
	id := strings.TrimSpace(r.Git("hash-object", "new.sh"))
	r.Plant(".git", id, "echo evil\n")
	cs := changes(t, c, snap)
	blob, _, err := c.Blob(id)
	must.Do(t, err)
	defer blob.Close()
	must.Same(t, "echo fine\n", string(must.Get(io.ReadAll(blob))(t)), "the change holds")
	sha := commit(t, c, cs)
	isDamaged(t, "the switch", c.Switch(t.Context(), "agent-ci/x", sha, cs), id)
	must.Fail(t, "", must.Err(exec.Command(gittest.Program(t), "-C", r.Dir, "rev-parse", "-q", "--verify", "agent-ci/x").CombinedOutput()), "the branch is there")
}

// Git does not hash what it reads, so it is given what was hashed.
func TestGitReadsNoDamagedObjects(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(r repo, id string){
		"lost":    func(r repo, id string) { must.Do(t, os.Remove(r.Path(".git/objects/"+id[:2]+"/"+id[2:]))) },
		"altered": func(r repo, id string) { r.Plant(".git", id, "hunter22\n") },
	} {
		r := seededRepo(t)
		c := r.open()
		snap := snapshot(t, c)
		r.Write("README", "one\n2\n")
		id := revision(r, "HEAD:README")
		damage(r, id)
		_, err := c.Changes(t.Context(), snap)
		isDamaged(t, "to count lines of one that is "+name, err, id)
	}
}
