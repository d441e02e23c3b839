package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func TestListDir(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{
		"b/deep/deeper/x": "", "b/y": "", "a": "", "a-b": "", "B": "", ".hidden": "", ".git/config": "", "out/o": "", ".gitignore": "out\n*.log\n", "b/z.log": "",
		strings.Repeat("n", 200) + "ü": "", ".apply-patch-JTLBPBIAGWPMXMULDDB6S7R755.tmp": "", // of a patch that is being applied
	})
	toolstest.Link(t, p.dir, map[string]string{"link": "b"})
	must.Do(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	must.Do(t, os.Mkdir(filepath.Join(p.dir, "void"), 0o700))
	long := strings.Repeat("n", 200) + "ü"
	for _, test := range []struct {
		name      string
		arguments map[string]any
		at, want  string
	}{
		{"two levels", map[string]any{}, "", ".gitignore\n.hidden\nB\na\na-b\nb/\n  deep/\n  y\nlink@\n" + long + "\npipe?\nvoid/\n"},
		{"one level", map[string]any{"depth": 1}, "", ".gitignore\n.hidden\nB\na\na-b\nb/\nlink@\n" + long + "\npipe?\nvoid/\n"},
		{"all levels", map[string]any{"dir_path": "b", "depth": 1e9}, "/b", "deep/\n  deeper/\n    x\ny\n"},
		{"from an entry on", map[string]any{"offset": 10}, "", long + "\npipe?\nvoid/\n"},
		{"up to an entry", map[string]any{"limit": 2}, "", ".gitignore\n.hidden\nMore than 2 entries found; go on with offset 3\n"},
		{"from one up to another", map[string]any{"offset": 6, "limit": 3}, "", "b/\n  deep/\n  y\nMore than 3 entries found; go on with offset 9\n"},
		{"just all", map[string]any{"dir_path": "b", "limit": 3}, "/b", "deep/\n  deeper/\ny\n"},
		{"a link", map[string]any{"dir_path": "link", "depth": 1}, "/link", "deep/\ny\n"},
		{"what is ignored, by name", map[string]any{"dir_path": "out"}, "/out", "o\n"},
		{"nothing", map[string]any{"dir_path": "void"}, "/void", "(nothing is in it, or nothing that git does not ignore)\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.arguments["dir_path"] == nil {
				test.arguments["dir_path"] = "."
			}
			want := "Absolute path: " + p.dir + test.at + "\n" + test.want
			must.Same(t, want, toolstest.Output(t, p.call(t, "list_dir", test.arguments)))
		})
	}
}

func TestListDirRefuses(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"file": "", ".git/config": ""})
	toolstest.Link(t, p.dir, map[string]string{"out": filepath.Dir(p.dir)})
	p.refuses(t, "list_dir", []refused{
		{map[string]any{"dir_path": ""}, "the path is empty"},
		{map[string]any{"dir_path": "missing"}, "there is no directory missing"},
		{map[string]any{"dir_path": "file"}, "file is not a directory"},
		{map[string]any{"dir_path": ".git"}, "is in git's own directory"},
		{map[string]any{"dir_path": "out"}, "is a link that leads out"},
		{map[string]any{"dir_path": "/"}, "is outside the working directory"},
		{map[string]any{"dir_path": "/proc"}, "is outside the working directory"},
		{map[string]any{"dir_path": ".", "offset": 0}, "offset must be a 1-indexed entry number"},
		{map[string]any{"dir_path": ".", "limit": 0}, "limit must be greater than zero"},
		{map[string]any{"dir_path": ".", "depth": 0}, "depth must be greater than zero"},
		{map[string]any{"dir_path": ".", "offset": 3}, "offset exceeds directory entry count: there are 2 to this depth"},
	})
}

func TestListDirQuotesNames(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"a\nb": "", "\xff": ""})
	if got := p.call(t, "list_dir", map[string]any{"dir_path": "."}); !strings.HasSuffix(got.Output, "\n\"a\\nb\"\n\"\\xff\"\n") {
		t.Errorf("got %q", got.Output)
	}
}

func TestListDirReturnsPages(t *testing.T) {
	p := newPlace(t)
	const all = 3000
	texts := map[string]string{}
	for i := range all {
		texts[fmt.Sprintf("%d/%s%d", i%30, strings.Repeat("n", 20), i)] = ""
	}
	toolstest.Write(t, p.dir, texts)
	pages := p.pages(t, "list_dir", map[string]any{"dir_path": ".", "limit": 100_000}, "entries found; go on with offset ")
	must.Same(t, all+30, strings.Count(strings.Join(pages, ""), "\n")-2*len(pages)+1, "the pages have")
}
