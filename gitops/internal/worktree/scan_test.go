package worktree_test

import (
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestScanFindsDifferences(t *testing.T) {
	r := gittest.New(t)
	r.Write(".gitignore", "*.log\n/build/\n")
	r.Write("kept.log", "tracked all the same\n")
	r.Write("folder/file", "f\n")
	r.Git("add", "-f", "kept.log")
	r.Seed()
	c := open(t, r)
	r.Write("README", "another length\n")
	r.Chmod("src/main.go", 0o755)
	r.Write("kept.log", "changed\n")
	r.Remove("gone", "folder")
	r.Write("folder", "a file in its place\n")
	r.Write("new/a", "a\n")
	r.Write("new/b.log", "b\n")
	r.Write("build/out", "o\n")
	r.Link("nowhere", "link")
	must.Do(t, syscall.Mkfifo(r.Path("pipe"), 0o666))
	r.Git("init", "-q", "inner")
	r.Write("git~1", "taken for .git by some\n")
	must.Same(t, []string{
		"changed README", "changed folder", "changed kept.log", "changed link", "changed new/a", "changed src/main.go",
		"deleted folder/file", "deleted gone", "invalid git~1", "repository inner", "untracked folder", "untracked link", "untracked new/a",
	}, c.scan(untrackedToo), "untracked")
	must.Same(t, []string{
		"changed README", "changed kept.log", "changed src/main.go", "deleted folder/file", "deleted gone", "ignored build", "ignored new/b.log",
		"invalid git~1", "repository inner", "untracked folder", "untracked link", "untracked new/a",
	}, c.scan(ignoredToo), "ignored")
}

// A file whose time alone is another one is compared by what is in it.
func TestScanComparesContentIfStatDataDiffer(t *testing.T) {
	r := gittest.Seeded(t)
	c := open(t, r)
	r.Write("README", "one\ntwo\n")
	r.Write("gone", "to be DELETED\n")
	must.Same(t, []string{"alike README", "changed gone"}, without(c.scan(ignoredToo), "alike src/main.go", "alike src/deep/er/x"), "found")
	r.Git("update-index", "--assume-unchanged", "gone")
	r.Git("update-index", "--skip-worktree", "src/main.go")
	r.Remove("src/main.go")
	must.Same(t, []string{"alike README"}, without(open(t, r).scan(ignoredToo), "alike src/deep/er/x"), "but for what git is not to look at")
}

// without leaves lines out that depend on the clock of the file system.
func without(list []string, some ...string) []string {
	var rest []string
	for _, line := range list {
		if !strings.Contains(strings.Join(some, "\n"), line) {
			rest = append(rest, line)
		}
	}
	return rest
}

// Nothing changed only if the metadata of all folders and files says so.
func TestScanProvesSameness(t *testing.T) {
	for what, of := range map[string]struct {
		same bool
		do   func(r gittest.Repo)
	}{
		"nothing":                   {true, func(gittest.Repo) {}},
		"new in an ignored folder":  {true, func(r gittest.Repo) { r.Write("build/more", "m\n") }},
		"a tracked file":            {false, func(r gittest.Repo) { r.Write("README", "one\n2wo\n") }},
		"a mode":                    {false, func(r gittest.Repo) { r.Chmod("src/main.go", 0o755) }},
		"a tracked file is missing": {false, func(r gittest.Repo) { r.Remove("src/deep/er/x") }},
		"an untracked file":         {false, func(r gittest.Repo) { r.Write("new/a", "b\n") }},
		"an ignored file":           {false, func(r gittest.Repo) { r.Write("src/out.log", "p\n") }},
		"new":                       {false, func(r gittest.Repo) { r.Write("src/deep/more", "m\n") }},
		"new in an empty folder":    {false, func(r gittest.Repo) { r.Write("hollow/more", "m\n") }},
		"a link to the folder": {false, func(r gittest.Repo) {
			must.Do(t, os.Rename(r.Path("src"), r.Path("build/src")))
			r.Link("build/src", "src")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			r := gittest.New(t)
			r.Write(".gitignore", "*.log\n/build/\n")
			r.Seed()
			for name, content := range map[string]string{"src/out.log": "o\n", "build/out": "o\n", "new/a": "a\n", "hollow/x": ""} {
				r.Write(name, content)
			}
			r.Remove("hollow/x")
			past := time.Now().Add(-time.Hour)
			for _, name := range []string{"README", "gone", ".gitignore", "src", "src/main.go", "src/deep", "src/deep/er", "src/deep/er/x", "new", "new/a", "src/out.log", "hollow", "."} {
				must.Do(t, os.Chtimes(r.Path(name), past, past))
			}
			r.Git("update-index", "--refresh")
			r.Git("config", "core.ignoreCase", "false")
			r.Git("config", "core.precomposeUnicode", "false")
			c := open(t, r)
			untracked := map[string]index.Stat{}
			before := scan.New(c.work.ScanTree(), c.index(), func(f scan.Found) {
				if !f.Dir {
					untracked[f.Path] = f.Stat()
				}
			})
			must.Do(t, before.Run(t.Context()))
			must.Same(t, 0, len(before.Suspects), "suspects")
			same := func(began time.Time) bool {
				return scan.New(c.work.ScanTree(), c.index(), nil).Same(t.Context(), before.Folders(began), maps.All(untracked))
			}
			must.Same(t, true, same(time.Now().Add(time.Hour)), "before")
			must.Same(t, false, same(past), "with folders that may have changed again")
			of.do(r)
			must.Same(t, of.same, same(time.Now().Add(time.Hour)), "after")
		})
	}
}

func TestScanFollowsFileSystemSettings(t *testing.T) {
	r := gittest.New(t)
	r.Link("target", "link")
	r.Seed()
	r.Git("config", "core.symlinks", "false")
	r.Git("config", "core.fileMode", "false")
	r.Remove("link")
	r.Write("link", "target")
	r.Chmod("README", 0o755)
	must.Same(t, []string{"alike README", "alike link"}, without(open(t, r).scan(ignoredToo), "alike gone", "alike src/main.go", "alike src/deep/er/x"), "found")
}

func TestScanReportsMovedSubmodules(t *testing.T) {
	other := gittest.Seeded(t)
	r := gittest.New(t)
	for _, name := range []string{"still", "moved", "absent"} {
		r.AddSubmodule(other, name)
	}
	r.Commit("seed")
	c := open(t, r)
	gittest.Repo{T: t, Dir: r.Path("moved")}.Commit("later")
	r.Write("still/new", "n\n")
	r.Remove("absent/.git")
	must.Same(t, []string{"submodule moved"}, without(c.scan(ignoredToo), "alike .gitmodules"), "found")
	r.Remove("absent")
	must.Same(t, []string{"deleted absent", "submodule moved"}, without(c.scan(ignoredToo), "alike .gitmodules"), "a folder that is gone")
}

func TestScanReportsUnreadableFolders(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	r := gittest.Seeded(t)
	r.Write("new/file", "n\n")
	c := open(t, r)
	for _, name := range []string{"src", "new"} {
		r.Chmod(name, 0)
		defer r.Chmod(name, 0o755)
	}
	must.Same(t, []string{"unreadable src"}, without(c.scan(untrackedToo), "alike README", "alike gone"), "found")
}

func TestScanGoesNoDeeperThanGit(t *testing.T) {
	for name, depth := range map[string]int{"d": 1500, strings.Repeat("long", 60): 30} {
		r := gittest.Seeded(t)
		c := open(t, r)
		r.Nest(name, depth)
		r.Write("beside", "b\n")
		deep := 0
		for _, line := range c.scan(untrackedToo) {
			if strings.HasPrefix(line, "too deep ") {
				deep++
			}
		}
		must.Same(t, 1, deep, "too deep")
	}
}

// Others may remove files and folders of the checkout while it is looked at.
func TestScanIgnoresFilesRemovedMeanwhile(t *testing.T) {
	r := gittest.Seeded(t)
	r.Write("a", "a\n")
	r.Write("b/c", "c\n")
	r.Write("z", "z\n")
	c := open(t, r)
	scan := scan.New(c.work.ScanTree(), c.index(), func(f scan.Found) {
		if f.Path == "a" {
			r.Remove("b")
			r.Remove("z")
		}
	})
	must.Do(t, scan.Run(t.Context()))
}
