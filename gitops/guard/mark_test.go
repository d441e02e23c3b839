package guard

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// gitFiles are a workspace with a repository, one below it and a submodule's.
var gitFiles = map[string]string{
	".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n", ".git/index": "i", ".git/logs/HEAD": "l", ".git/packed-refs": "p",
	".git/refs/heads/main": "1", ".git/objects/aa/bb": "o", ".git/objects/info/alternates": "/elsewhere\n", ".git/info/exclude": "x", ".git/hooks/sample": "s",
	".git/modules/deep/lib/config": "[core]\n", ".git/modules/deep/lib/index": "i", ".git/modules/deep/lib/objects/aa/bb": "o",
	"vendored/.git/HEAD": "ref: refs/heads/main\n", "main.go": "package main\n",
}

func TestMarkDetectsChanges(t *testing.T) {
	write := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { must.Write(t, filepath.Join(dir, name), content) }
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, string)
		want   []string
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"files of the work tree", write("main.go", "package other\n"), nil},
		{"the index", write(".git/index", "other"), nil},
		{"a log", write(".git/logs/refs/heads/main", "other"), nil},
		{"a link for a log", func(t *testing.T, dir string) {
			orPanic(os.Remove(filepath.Join(dir, ".git/logs/HEAD")))
			orPanic(os.Symlink("../../main.go", filepath.Join(dir, ".git/logs/HEAD")))
		}, []string{".git/logs/HEAD is new"}},
		{"a link for the folder of logs", func(t *testing.T, dir string) {
			orPanic(os.RemoveAll(filepath.Join(dir, ".git/logs")))
			orPanic(os.Symlink("..", filepath.Join(dir, ".git/logs")))
		}, []string{".git/logs is new"}},
		{"a pipe for a log of a submodule", func(t *testing.T, dir string) {
			orPanic(os.Mkdir(filepath.Join(dir, ".git/modules/deep/lib/logs"), 0o755))
			orPanic(syscall.Mkfifo(filepath.Join(dir, ".git/modules/deep/lib/logs/HEAD"), 0o600))
		}, []string{".git/modules/deep/lib/logs/HEAD is new"}},
		{"a link for the index", func(t *testing.T, dir string) {
			orPanic(os.Remove(filepath.Join(dir, ".git/index")))
			orPanic(os.Symlink("../main.go", filepath.Join(dir, ".git/index")))
		}, []string{".git/index is new"}},
		{"a branch that is called logs", write(".git/refs/heads/logs", "2"), []string{".git/refs/heads/logs is new"}},
		{"a loose object", write(".git/objects/cc/dd", "new"), nil},
		{"an object of a submodule", write(".git/modules/deep/lib/objects/cc/dd", "new"), nil},
		{"a lock that was left", write(".git/index.lock", ""), nil},
		{"the configuration", write(".git/config", "[alias]\n"), []string{".git/config was changed"}},
		{"a worktree's configuration", write(".git/config.worktree", "[alias]\n"), []string{".git/config.worktree is new"}},
		{"a hook", write(".git/hooks/pre-commit", "#!/bin/sh\n"), []string{".git/hooks/pre-commit is new"}},
		{"a folder that looks like a lock", write(".git/hooks/x.lock/y", "#!/bin/sh\n"), []string{".git/hooks/x.lock is new", ".git/hooks/x.lock/y is new"}},
		{"the mode of a hook", func(t *testing.T, dir string) { orPanic(os.Chmod(filepath.Join(dir, ".git/hooks/sample"), 0o755)) }, []string{".git/hooks/sample was changed"}},
		{"HEAD", write(".git/HEAD", "ref: refs/heads/other\n"), []string{".git/HEAD was changed"}},
		{"a branch", write(".git/refs/heads/main", "2"), []string{".git/refs/heads/main was changed"}},
		{"packed references", func(t *testing.T, dir string) { orPanic(os.Remove(filepath.Join(dir, ".git/packed-refs"))) }, []string{".git/packed-refs is gone"}},
		{"attributes", write(".git/info/attributes", "* filter=x\n"), []string{".git/info/attributes is new"}},
		{"alternates", write(".git/objects/info/alternates", "/tmp\n"), []string{".git/objects/info/alternates was changed"}},
		{"a submodule's configuration", write(".git/modules/deep/lib/config", "[alias]\n"), []string{".git/modules/deep/lib/config was changed"}},
		{"a new submodule", write(".git/modules/n/HEAD", "x"), []string{".git/modules/n is new", ".git/modules/n/HEAD is new"}},
		{"the configuration of a repository below", write("vendored/.git/config", "[core]\n\tfsmonitor = x\n"), []string{"vendored/.git/config is new"}},
		{"a new repository", write("docs/.git/config", "[core]\n"), []string{"docs/.git is a new repository"}},
		{"a new repository of another spelling", write("docs/.GIT/config", "[core]\n"), []string{"docs/.GIT is a new repository"}},
		{"a file that names a repository", write("docs/.git", "gitdir: /tmp/x\n"), []string{"docs/.git is a new repository"}},
		{"the configuration as a link", func(t *testing.T, dir string) {
			orPanic(os.Remove(filepath.Join(dir, ".git/config")))
			orPanic(os.Symlink("../main.go", filepath.Join(dir, ".git/config")))
		}, []string{".git/config was changed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := realTempDir(t)
			for name, content := range gitFiles {
				must.Write(t, filepath.Join(dir, name), content)
			}
			mark := markOf(t, dir)
			c.change(t, dir)
			got := must.Get(mark.ChangedFiles(t.Context()))(t)
			must.Same(t, c.want, got)
		})
	}
}

func markOf(t *testing.T, dir string) *Mark {
	t.Helper()
	return must.Get(NewMark(t.Context(), dir, true, nil))(t)
}

func TestMarkFollowsGitFile(t *testing.T) {
	base := realTempDir(t)
	must.Write(t, filepath.Join(base, "main/.git/config"), "[core]\n")
	must.Write(t, filepath.Join(base, "main/.git/worktrees/w/commondir"), "../..\n")
	must.Write(t, filepath.Join(base, "w/.git"), "gitdir: "+filepath.Join(base, "main/.git/worktrees/w")+"\n")
	mark := markOf(t, filepath.Join(base, "w"))
	must.Write(t, filepath.Join(base, "main/.git/config"), "[alias]\n")
	must.Write(t, filepath.Join(base, "w/.git"), "gitdir: /tmp\n")
	got := must.Get(mark.ChangedFiles(t.Context()))(t)
	must.Same(t, []string{filepath.Join(base, "main/.git/config") + " was changed", ".git was changed"}, got)
}

// A submodule's .git lies in the work tree, where commands write in every tier,
// and git of the repository above obeys what it names.
func TestMarkCoversSubmodules(t *testing.T) {
	dir := realTempDir(t)
	if mark, err := NewMark(t.Context(), dir, false, nil); mark != nil || err != nil {
		t.Errorf("without submodules: %v, %v", mark, err)
	}
	for name, content := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", "lib/.git": "gitdir: ../.git/modules/lib\n", "other/.git/HEAD": "x\n",
		".git/modules/lib/config": "[core]\n", "unnamed/.git": "gitdir: ../folder/real\n", "folder/real/HEAD": "x\n", "folder/real/commondir": "../common\n",
		".gitmodules":     "[submodule \"lib\"]\n\tpath = lib\n[submodule \"late\"]\n\tpath = late\n[submodule \"out\"]\n\tpath = ../out\n",
		"lib/.gitmodules": "[submodule \"deep\"]\n\tpath = deep\n", "lib/deep/.git": "gitdir: ../../.git/modules/lib/modules/deep\n",
	} {
		must.Write(t, filepath.Join(dir, name), content)
	}
	mark := must.Get(NewMark(t.Context(), dir, false, []string{"lib", "unnamed", "../out"}))(t)
	must.Write(t, filepath.Join(dir, "other/.git/HEAD"), "somebody else's\n")
	must.Write(t, filepath.Join(dir, "made/.git/HEAD"), "new\n")
	must.None(t, must.Get(mark.ChangedFiles(t.Context()))(t), "repositories that are no submodules")
	must.Write(t, filepath.Join(dir, "lib/deep/.git"), "gitdir: ../../evil\n")
	must.Write(t, filepath.Join(dir, "late/.git/config"), "[core]\n\tfsmonitor = ./evil\n")
	orPanic(os.Rename(filepath.Join(dir, "lib"), filepath.Join(dir, "moved")))
	must.Write(t, filepath.Join(dir, ".git/modules/lib/config"), "only agent-ci writes it\n")
	orPanic(os.Rename(filepath.Join(dir, "folder"), filepath.Join(dir, "away")))
	must.Write(t, filepath.Join(dir, "folder/real/HEAD"), "planted\n")
	must.Write(t, filepath.Join(dir, "folder/common/config"), "[core]\n\tfsmonitor = ./evil\n")
	must.Write(t, filepath.Join(dir, "lib/.git"), "gitdir: ../evil\n")
	got := must.Get(mark.ChangedFiles(t.Context()))(t)
	want := []string{
		"folder/real/HEAD was changed", "folder/real/commondir is gone", "lib/.git was changed", "lib/deep/.git is gone",
		"folder/common is new", "folder/common/config is new", "late/.git is new", "late/.git/config is new",
	}
	must.Same(t, want, got)
}

// Commands write .gitmodules, whose paths may lead back to the folder that has it.
func TestReadsCyclicSubmodulesOnce(t *testing.T) {
	dir := realTempDir(t)
	must.Write(t, filepath.Join(dir, "lib/.gitmodules"), "[submodule \"up\"]\n\tpath = up\n")
	orPanic(os.Symlink(dir, filepath.Join(dir, "lib/up")))
	orPanic(os.Symlink(".", filepath.Join(dir, "one")))
	orPanic(os.Symlink(".", filepath.Join(dir, "two")))
	must.Write(t, filepath.Join(dir, ".gitmodules"), "[submodule \"here\"]\n\tpath = ./\n[submodule \"back\"]\n\tpath = lib/..\n"+
		"[submodule \"one\"]\n\tpath = one\n[submodule \"two\"]\n\tpath = two\n[submodule \"lib\"]\n\tpath = lib\n")
	var want []string
	for _, name := range []string{"one/.git", "two/.git", "lib/.git", "lib/up/.git"} {
		want = append(want, filepath.Join(dir, name))
	}
	must.Same(t, want, submodulesOf(dir))
}

// realTempDir is a temporary folder without a link on the way to it.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	orPanic(err)
	return dir
}

func orPanic(err error) {
	if err != nil {
		panic(err)
	}
}
