package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// history is a repository whose two commits change files in every way.
func history(t *testing.T) gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	r.Write("folder/in/file", "a file below\n")
	r.Write("file", "a file\n")
	r.Write("plain", "p\n")
	r.Link("plain", "link")
	r.Seed()
	r.Git("tag", "first")
	r.Remove("folder", "file", "gone", "link", "src/main.go")
	r.Write("folder", "now a file\n")
	r.Write("file/deep/er", "now a folder\n")
	r.Write("link", "now a file\n")
	r.Link("nowhere", "src/main.go")
	r.Chmod("plain", 0o755)
	r.Write("README", "new\n")
	r.Commit("second")
	r.Git("tag", "second")
	return r
}

func TestCheckOutRoundTrip(t *testing.T) {
	c := open(t, history(t))
	second := c.Files()
	c.Write("src/mine", "untracked\n")
	stats := must.Get(c.work.CheckOut(t.Context(), c.id("first^{tree}"), c.differences("second", "first")))(t)
	got := c.Files()
	delete(got, "src/mine")
	c.Remove("src/mine")
	c.Git("stash", "-q", "-u")
	c.Git("checkout", "-q", "first")
	must.Same(t, c.Files(), got, "first")
	if _, written := stats["README"]; !written {
		t.Errorf("no stat data of README in %v", stats)
	}
	c.Write("src/mine", "untracked\n")
	must.Get(c.work.CheckOut(t.Context(), c.id("second^{tree}"), c.differences("first", "second")))(t)
	second["src/mine"] = "untracked\n"
	must.Same(t, second, c.Files(), "second")
}

// What is in the way is found before anything is written.
func TestCheckOutOverRefusesObstructedFiles(t *testing.T) {
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	c.Write("folder/mine", "untracked\n")
	c.Write("mine", "untracked\n")
	before := c.Files()
	id := c.id(c.GitWith(nil, []byte("theirs\n"), "hash-object", "-w", "--stdin"))
	for place, obstacle := range map[string]string{"folder": "folder/mine", "mine/below/it": "mine"} {
		add := []objects.Difference{{Path: "aaa", New: objects.Entry{Mode: index.Regular, ID: id}}, {Path: place, New: objects.Entry{Mode: index.Regular, ID: id}}}
		_, err := c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("first^{tree}"), add)
		if obstructed := (*worktree.ObstructedError)(nil); !errors.As(err, &obstructed) {
			t.Errorf("%s: %v", place, err)
		} else {
			must.Same(t, []string{obstacle}, obstructed.Paths, "in the way")
		}
		must.Same(t, before, c.Files(), "files")
	}
}

// What somebody writes while other files are replaced is kept.
func TestCheckOutKnownKeepsConcurrentChanges(t *testing.T) {
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	changes := slices.DeleteFunc(c.differences("first", "second"), func(d objects.Difference) bool { return d.Path != "README" && d.Path != "gone" })
	stats := map[string]index.Stat{}
	for _, path := range []string{"README", "gone"} {
		info := must.Get(os.Lstat(c.Path(path)))(t)
		stats[path] = index.StatOf(info)
	}
	c.Write("README", "mine, too\n")
	before := c.Files()
	_, err := c.work.CheckOutKnown(t.Context(), c.id("second^{tree}"), changes, stats)
	if changed, is := errors.AsType[*worktree.ChangedError](err); !is || changed.PartlyWritten {
		t.Errorf("a file that was written meanwhile: %v", err)
	} else {
		must.Same(t, []string{"README"}, changed.Paths, "changed")
	}
	must.Same(t, before, c.Files(), "files")
}

// busy is git that runs a command of a shell before one of its own.
func busy(t *testing.T, before, command string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' %s '*) %s;; esac\nexec %s \"$@\"\n", before, command, gittest.Program(t))
	must.Do(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

// What others do at the last moment is lost as little, and then nothing is written at all.
func TestCheckOutOverIsAtomic(t *testing.T) {
	for name, c := range map[string]struct {
		others string
		path   string
	}{
		"a file that is written":             {"echo mine >README", "README"},
		"a file that is there now":           {"echo mine >file/deep/er || { mkdir -p new; echo mine >new/file; }", "new/file"},
		"a folder that has more now":         {"echo mine >folder/mine", "folder"},
		"a file in the place of a folder":    {"rm -r src; echo mine >src", "src/main.go"},
		"another mode":                       {"chmod +x README", "README"},
		"an ignore file that hides the file": {"mkdir new; echo mine >new/file; chmod 600 new/file; echo x >.gitignore", "new/file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := history(t)
			r.Write("new/file", "theirs\n")
			r.Commit("third")
			r.Git("tag", "-f", "second")
			r.Git("checkout", "-q", "first")
			one := openWith(t, r, busy(t, "read-tree", "cd "+r.Dir+"; "+c.others))
			_, err := one.work.CheckOutOver(t.Context(), one.index(), one.id("first^{tree}"), one.id("second^{tree}"), one.differences("first", "second"))
			var changed *worktree.ChangedError
			if !errors.As(err, &changed) || changed.PartlyWritten {
				t.Fatalf("got %v", err)
			}
			must.Same(t, []string{c.path}, changed.Paths, "in the way")
			must.Same(t, "to be deleted\n", r.Read("gone"), "gone")
			must.Same(t, "a file below\n", r.Read("folder/in/file"), "folder")
			must.Fail(t, "", must.Err(os.Lstat(r.Path("file/deep/er"))), "a part was written")
		})
	}
}

// A git that is killed leaves the lock of its index, which is in nobody's way.
func TestCheckOutOverIgnoresStaleLock(t *testing.T) {
	r := history(t)
	r.Git("checkout", "-q", "first")
	killed := filepath.Join(t.TempDir(), "killed")
	c := openWith(t, r, busy(t, "read-tree", fmt.Sprintf("[ -e %s ] || { touch %[1]s $GIT_INDEX_FILE.lock; exit 137; }", killed)))
	out := func() error {
		_, err := c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("second^{tree}"), c.differences("first", "second"))
		return err
	}
	must.Fail(t, "", out(), "nobody killed git")
	must.Do(t, out())
	must.Same(t, "now a folder\n", r.Read("file/deep/er"), "file")
	must.None(t, must.Get(filepath.Glob(filepath.Join(c.repo.PrivateDir, "*landing*")))(t), "left")
}

// Nothing goes through a link, or in the place of one, that others made of a folder.
func TestCheckOutOverRefusesLinkedFolder(t *testing.T) {
	for name, changes := range map[string]func(d objects.Difference) bool{
		"an addition": func(d objects.Difference) bool { return d.Path == "file/deep/er" },
		"a change":    func(d objects.Difference) bool { return d.Path == "src/main.go" },
	} {
		c := open(t, history(t))
		c.Git("checkout", "-q", "first")
		c.Remove("file")
		for _, folder := range []string{"file", "src"} {
			c.Write("kept/"+folder+"/main.go", "package main\n")
			c.Remove(folder)
			c.Link("kept/"+folder, folder)
		}
		before := c.Files()
		wanted := slices.DeleteFunc(c.differences("first", "second"), func(d objects.Difference) bool { return !changes(d) })
		_, err := c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("second^{tree}"), wanted)
		if !errors.As(err, new(*worktree.ChangedError)) && !errors.As(err, new(*worktree.ObstructedError)) {
			t.Errorf("%s: %v", name, err)
		}
		must.Same(t, before, c.Files(), name)
	}
}

// Files are written as git checks them out, and those of filters as they make them.
func TestCheckOutOverConverts(t *testing.T) {
	r := gittest.New(t)
	r.Write(".gitattributes", "*.txt text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n*.caps filter=caps\n*.dos filter=caps text eol=crlf\n")
	r.Write("sub/.gitattributes", "*.txt -text\n")
	r.Write("old.caps", "old\n")
	r.Commit("first")
	r.Git("tag", "first")
	for _, folder := range []string{"", "sub/", "new/"} {
		for name, content := range map[string]string{"a.txt": "a\r\n", "a.id": "$Id$\n", "a.u16": "a\x00\n\x00", "a.caps": "a\n", "a.dos": "a\r\n"} {
			r.Write(folder+name, content)
		}
	}
	r.Write("new/.gitattributes", "*.txt eol=lf\n")
	r.Write("old.caps", "new\n")
	r.Commit("second")
	r.Git("tag", "second")
	r.Git("config", "filter.caps.smudge", "tr a-z A-Z")
	r.Git("config", "filter.caps.clean", "tr A-Z a-z")
	r.Git("checkout", "-q", "first")
	r.Remove("old.caps")
	r.Git("checkout", "-q", "--", "old.caps")
	must.Same(t, "OLD\n", r.Read("old.caps"), "filtered")
	c := open(t, r)
	stats := must.Get(c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("second^{tree}"), c.differences("first", "second")))(t)
	got := r.Files()
	for path, stat := range stats {
		info, err := os.Lstat(r.Path(path))
		if err != nil || stat != index.StatOf(info) {
			t.Errorf("%s: noted %+v, %v", path, stat, err)
		}
	}
	r.Git("clean", "-q", "-f", "-d")
	r.Git("reset", "-q", "--hard")
	r.Git("checkout", "-q", "second")
	must.Same(t, r.Files(), got, "files")
	must.Same(t, 17, len(stats), "files are noted")
}

// The stat data of a file is that of when it was written, so that git finds what others
// write while the rest is.
func TestCheckOutRecordsStatAtWrite(t *testing.T) {
	r := history(t)
	r.Git("checkout", "-q", "first")
	r.Write(".git/info/attributes", "plain ident\n") // git writes it, after all others
	c := openWith(t, r, busy(t, "checkout-index", "echo mine >>"+r.Path("README")))
	changes := c.differences("first", "second")
	stats := must.Get(c.work.CheckOut(t.Context(), c.id("second^{tree}"), changes))(t)
	must.Same(t, "new\nmine\n", c.Read("README"), "README")
	must.Same(t, uint32(len("new\n")), stats["README"].Size, "noted is a size")
	for _, d := range changes {
		info, err := os.Lstat(c.Path(d.Path))
		if d.New.Mode != 0 && d.Path != "README" && (err != nil || stats[d.Path] != index.StatOf(info)) {
			t.Errorf("%s: noted %+v, %v", d.Path, stats[d.Path], err)
		}
	}
}

// Nothing is written or removed through a link in the place of a folder.
func TestCheckOutFollowsNoLink(t *testing.T) {
	aside := gittest.New(t)
	aside.Write("deep/er/x", "mine\n")
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	c.Remove("src")
	c.Link(aside.Dir, "src")
	back := slices.DeleteFunc(c.differences("", "first"), func(d objects.Difference) bool { return d.Path != "src/deep/er/x" })
	if _, err := c.work.CheckOut(t.Context(), c.id("first^{tree}"), back); !errors.As(err, new(*worktree.ObstructedError)) {
		t.Errorf("to write: %v", err)
	}
	remove := []objects.Difference{{Path: "src/deep/er/x", Old: back[0].New}}
	must.Do(t, must.Err(c.work.CheckOut(t.Context(), c.id("first^{tree}"), remove)), "to remove")
	must.Same(t, map[string]string{"deep/er/x": "mine\n"}, aside.Files(), "aside")
}

// Of a tree with a damaged file nothing is written, and nothing makes room for it.
func TestCheckOutRefusesDamagedFiles(t *testing.T) {
	c := open(t, history(t))
	before := c.Files()
	changes := c.differences("second", "first")
	id := c.Git("rev-parse", "first:README")
	c.Remove(".git/objects/" + id[:2] + "/" + id[2:])
	if _, err := open(t, c.Repo).work.CheckOut(t.Context(), c.id("first^{tree}"), changes); !errors.As(err, new(*objects.DamagedError)) {
		t.Errorf("got %v", err)
	}
	must.Same(t, before, c.Files(), "files")
}

func TestFillMatchesGit(t *testing.T) {
	r := gittest.New(t)
	r.Write(".gitattributes", "*.dos eol=crlf\n*.caps filter=caps\n")
	r.Write("a.dos", "a\nb\n")
	r.Write("sub/.gitattributes", "*.dos -text\n")
	r.Write("sub/b.dos", "a\nb\n")
	r.Link("a.dos", "link")
	r.Seed()
	r.Chmod("gone", 0o755)
	r.Commit("more")
	c := open(t, r)
	fresh := gittest.Repo{T: t, Dir: filepath.Join(t.TempDir(), "fresh")}
	gitDir := fresh.Path(".git")
	must.Do(t, os.MkdirAll(gitDir, 0o777))
	must.Do(t, c.repo.FillGitDir(repository.TreeFolder{Dir: gitDir, SeenAt: gitDir}))
	fresh.Write(".git/objects/info/alternates", r.Path(".git/objects")+"\n")
	root := must.Get(os.OpenRoot(fresh.Dir))(t)
	defer root.Close()
	must.Do(t, c.work.Fill(t.Context(), root, c.id("HEAD^{tree}")))
	want := r.Files()
	want["a.dos"] = "a\r\nb\r\n"
	must.Same(t, want, fresh.Files(), "files")
	must.Same(t, r.Git("rev-parse", "HEAD^{tree}"), fresh.Git("write-tree"), "staged")
	must.Same(t, "", fresh.Git("diff-files", "--name-only"), "status")
}

func TestCompareIndexAsGitDiff(t *testing.T) {
	c := open(t, history(t))
	c.Git("rm", "-q", "-r", "--cached", "src")
	c.Write("new/staged", "n\n")
	c.Write("README", "staged\n")
	c.Git("add", "new", "README")
	c.Write("new/intended", "i\n")
	c.Git("add", "-N", "new/intended")
	for _, commit := range []string{"first", "second"} {
		var got []string
		must.Do(t, c.objects.CompareIndex(t.Context(), c.index(), c.id(commit+"^{tree}"), func(path string, _ objects.Entry) { got = append(got, path) }))
		slices.Sort(got)
		want := append(gitLines(c.Git("diff", "--cached", "--no-renames", "--name-only", commit)), "new/intended")
		slices.Sort(want)
		must.Same(t, slices.Compact(want), got, commit)
	}
}
