package gitops_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
)

func TestUntrackedFileThatBecomesAFolder(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.write("notes", "the user's\n")
	c := r.open("")
	snap := snapshot(t, c)
	r.remove("notes")
	r.write("notes/new", "the agent's\n")
	same(t, "change", []string{"A notes/new"}, nameStatus(changes(t, c, snap)))
}

func TestChangesCountsLines(t *testing.T) {
	for _, variant := range []struct{ name, git string }{{"with git", gitProgram(t)}, {"without git", ""}} {
		t.Run(variant.name, func(t *testing.T) {
			r := newRepo(t)
			r.write("blob", "\x00\x01")
			r.link("README", "link")
			r.seed()
			c := r.open(variant.git)
			snap := snapshot(t, c)
			r.write("README", "one\nzwei\nthree")
			r.write("blob", "\x00\x02")
			r.write("empty", "")
			r.remove("gone", "link")
			r.link("gone", "link")
			cs := changes(t, c, snap)
			got := map[string][2]int{}
			binary := map[string]bool{}
			for _, f := range cs.Files {
				got[f.Path], binary[f.Path] = [2]int{f.Insertions, f.Deletions}, f.Binary
			}
			same(t, "lines", map[string][2]int{"README": {2, 1}, "blob": {}, "empty": {}, "gone": {0, 1}, "link": {1, 1}}, got)
			same(t, "binary", map[string]bool{"README": false, "blob": true, "empty": false, "gone": false, "link": false}, binary)
			same(t, "insertions and deletions", [2]int{3, 3}, [2]int{cs.Insertions, cs.Deletions})
		})
	}
}

func TestChangesAgain(t *testing.T) {
	r := newRepo(t)
	r.seed()
	c := r.open("")
	snap := snapshot(t, c)
	if cs := changes(t, c, snap); !cs.Empty() {
		t.Errorf("a change before any: %q", nameStatus(cs))
	}
	edit(r)
	first := changes(t, c, snap)
	r.write("README", "one\ntwo\n")
	r.write("other", "o\n")
	second := changes(t, c, snap)
	same(t, "first", []string{"M README"}, nameStatus(first))
	same(t, "second", []string{"A other"}, nameStatus(second))
	if err := c.Switch(t.Context(), "agent-ci/x", commit(t, c, second), second); err != nil {
		t.Fatal(err)
	}
	same(t, "status", nil, r.status())
}

func TestAnEmptyChangeSet(t *testing.T) {
	var none *gitops.ChangeSet
	if !none.Empty() || !new(gitops.ChangeSet).Empty() {
		t.Error("a change set of nothing is not empty")
	}
}

func TestChangesKeepsWhatCannotBeReadOut(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	r := newRepo(t)
	r.seed()
	c := r.open("")
	snap := snapshot(t, c)
	edit(r)
	r.write("secret", "s")
	r.chmod("secret", 0)
	r.write("closed/x", "x")
	r.chmod("closed", 0)
	defer r.chmod("closed", 0o700)
	cs := changes(t, c, snap)
	same(t, "change", []string{"M README"}, nameStatus(cs))
	same(t, "problems", []gitops.ProblemKind{gitops.ProblemUnreadable}, kinds(cs))
}

func TestAttributesThatOnlyGitKnowsWithoutGit(t *testing.T) {
	r := newRepo(t)
	r.seed()
	c := r.open("")
	snap := snapshot(t, c)
	r.write(".gitattributes", "*.id ident\n")
	r.write("a.id", "$Id$\n")
	cs := changes(t, c, snap)
	same(t, "change", []string{"A .gitattributes"}, nameStatus(cs))
	same(t, "problems", []gitops.ProblemKind{gitops.ProblemUnreadable}, kinds(cs))
}

// The submodule of a checkout is never gone into; that it is on another commit
// cannot be published.
func TestAChangedSubmoduleIsAProblem(t *testing.T) {
	other := newRepo(t)
	other.seed()
	r := newRepo(t)
	r.seed()
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "sub")
	r.commit("with a submodule")
	c := r.open("")
	snap := snapshot(t, c)
	sub := repo{t, r.path("sub")}
	sub.write("README", "changed\n")
	sub.write("new", "n\n")
	if cs := changes(t, c, snap); !cs.Empty() || len(cs.Problems) > 0 {
		t.Errorf("files in a submodule: %q %v", nameStatus(cs), cs.Problems)
	}
	sub.commit("in the submodule")
	cs := changes(t, c, snap)
	same(t, "problems", []gitops.ProblemKind{gitops.ProblemSubmodule}, kinds(cs))
	if !cs.Empty() {
		t.Errorf("change: %q", nameStatus(cs))
	}
}

// Reading updates the access time on no file system that tests run on for
// sure, so an unchanged file is given other content of the same size behind
// unchanged stat data: who does not read does not see it.
func TestFilesThatDidNotChangeAreNotRead(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.git("config", "core.trustctime", "false")
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(r.path("README"), past, past); err != nil {
		t.Fatal(err)
	}
	r.git("update-index", "--refresh")
	f, err := os.OpenFile(r.path("README"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("ONE\nTWO\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(r.path("README"), past, past); err != nil {
		t.Fatal(err)
	}
	c := r.open("")
	snap := snapshot(t, c)
	r.write("src/main.go", "package other\n")
	same(t, "change", []string{"M src/main.go"}, nameStatus(changes(t, c, snap)))
}

// A disk that is full must be told from a git that failed, also where git is
// ended by its broken pipe.
func TestAPatchThatCannotBeWrittenSaysWhy(t *testing.T) {
	r := newRepo(t)
	r.seed()
	c := r.open(gitProgram(t))
	snap := snapshot(t, c)
	r.write("README", strings.Repeat("a line of a patch that fits in no pipe\n", 10000))
	err := c.WritePatch(t.Context(), changes(t, c, snap), fullDisk{})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A filter that is not installed is found before any work is done.
func TestARequiredFilterWithoutItsProgramIsUnsupported(t *testing.T) {
	for name, c := range map[string]struct {
		clean, required string
		refused         bool
	}{
		"not there":               {"agent-ci-no-such-filter clean", "true", true},
		"not there, not required": {"agent-ci-no-such-filter clean", "false", false},
		"there":                   {"tr a-z A-Z", "true", false},
		"of the shell":            {"cd / && cat", "true", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write(".gitattributes", "*.bin filter=large\n")
			r.seed()
			r.git("config", "filter.large.clean", c.clean)
			r.git("config", "filter.large.required", c.required)
			opened, err := gitops.Open(t.Context(), gitops.Options{Dir: r.dir, Git: gitProgram(t), State: t.TempDir()})
			var unsupported *gitops.UnsupportedError
			if errors.As(err, &unsupported) != c.refused || err != nil && !c.refused {
				t.Errorf("Open = %v, want refused: %v", err, c.refused)
			}
			if err == nil && opened.Close() != nil {
				t.Error("not closed")
			}
		})
	}
}

func TestAFilterThatFailsTakesNoOtherFileWithIt(t *testing.T) {
	r := newRepo(t)
	r.write(".gitattributes", "*.bin filter=large\n")
	r.seed()
	r.git("config", "filter.large.clean", "false")
	r.git("config", "filter.large.required", "true")
	c := r.open(gitProgram(t))
	snap := snapshot(t, c)
	edit(r)
	r.write("new.bin", "content")
	cs := changes(t, c, snap)
	same(t, "change", []string{"M README"}, nameStatus(cs))
	same(t, "problems", []gitops.ProblemKind{gitops.ProblemUnreadable}, kinds(cs))
}
