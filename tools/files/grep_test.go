package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// older makes a file so many hours older than others.
func older(t *testing.T, path string, hours int) {
	t.Helper()
	when := time.Date(2026, 1, 2, 12-hours, 0, 0, 0, time.UTC)
	must.Do(t, os.Chtimes(path, when, when))
}

func (p resolver) files(t *testing.T, texts map[string]string) {
	t.Helper()
	toolstest.Write(t, p.dir, texts)
	for name := range texts {
		older(t, filepath.Join(p.dir, name), 1)
	}
}

// TestSearchListsChangedFilesFirst has files of which some changed since the agent began: only the
// times of those count, since a checkout writes the others in any order.
func TestSearchListsChangedFilesFirst(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"a": "text\n", "b": "text\n", "c": "text\n", "d": "text\n", "e": "text\n"})
	for name, hours := range map[string]int{"d": 2, "b": 3, "c": 5, "e": 4, "a": 6} {
		older(t, filepath.Join(p.dir, name), hours)
	}
	since := time.Date(2026, 1, 2, 8, 30, 0, 0, time.UTC)
	tool := files.New(files.Options{Dir: toolstest.Folder(t, p.dir), Since: since})[2]
	must.Same(t, "d\nb\na\nc\ne\n", must.Get(tool.Run(t.Context(), tools.Call{Input: `{"pattern":"text"}`}))(t).Output)
}

// TestGrepFilesListsUnsearchedFiles is about text in encodings other than UTF-8.
func TestGrepFilesListsUnsearchedFiles(t *testing.T) {
	p := newPlace(t)
	p.files(t, encodings)
	p.files(t, map[string]string{"plain": "func\n", "bin": "func\x00"})
	const unread = "(not searched, since they are UTF-16 or UTF-32, which commands such as iconv convert: "
	for _, test := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"pattern": "func"}, "plain\n" + unread + "unmarked, utf16, utf16be, utf32)\n"},
		{map[string]any{"pattern": "none"}, "No matches found.\n" + unread + "unmarked, utf16, utf16be, utf32)"},
		{map[string]any{"pattern": "func", "path": "utf16"}, "No matches found.\n" + unread + "utf16)"},
		{map[string]any{"pattern": "func", "include": "utf32"}, "No matches found.\n" + unread + "utf32)"},
		{map[string]any{"pattern": "func", "path": "bin"}, "No matches found."},
		{map[string]any{"pattern": "", "include": "utf16"}, "utf16\n"},
	} {
		must.Same(t, test.want, toolstest.Output(t, p.call(t, "grep_files", test.arguments)), test.arguments)
	}
	for i := range 9 {
		p.files(t, map[string]string{fmt.Sprint("more", i): encodings["utf16"]})
	}
	if got := p.call(t, "grep_files", map[string]any{"pattern": "none"}); !strings.HasSuffix(got.Output, "more0, more1, more2, more3, more4 and 8 more)") {
		t.Errorf("got %+v", got)
	}
}

func TestGrepFiles(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{
		"main.go": "package main\n\nfunc Main() {}\n", "src/a.ts": "func\r\n", "src/b.tsx": "FUNC\n", "src/deep/c.go": "// a func\n",
		"bin": "func\x00", "empty": "", "build/out.go": "func\n", ".gitignore": "build/\n", ".github/w.yml": "func\n", ".git/config": "func\n",
		"sub/.git/config": "func\n", "sub/x.go": "func\n",
	})
	older(t, filepath.Join(p.dir, "src/deep/c.go"), 0)
	older(t, filepath.Join(p.dir, "main.go"), 2)
	for _, test := range []struct {
		name      string
		arguments map[string]any
		want      string
	}{
		{"the newest first, those of one time by name", map[string]any{"pattern": "func"}, "src/deep/c.go .github/w.yml src/a.ts sub/x.go main.go"},
		{"expression", map[string]any{"pattern": `^func \w+\(`}, "main.go"},
		{"end of a line", map[string]any{"pattern": "^func$"}, ".github/w.yml src/a.ts sub/x.go"},
		{"any case", map[string]any{"pattern": "(?i)^func$"}, ".github/w.yml src/a.ts src/b.tsx sub/x.go"},
		{"any case by another agent's word", map[string]any{"pattern": "^func$", "-i": true}, ".github/w.yml src/a.ts src/b.tsx sub/x.go"},
		{"nothing", map[string]any{"pattern": "no such"}, ""},
		{"names", map[string]any{"pattern": "func", "include": "*.go"}, "src/deep/c.go sub/x.go main.go"},
		{"alternatives", map[string]any{"pattern": "(?i)func", "include": "*.{ts,tsx}"}, "src/a.ts src/b.tsx"},
		{"a path", map[string]any{"pattern": "func", "include": "src/*"}, "src/a.ts"},
		{"a path from the top", map[string]any{"pattern": "func", "include": "/*.go"}, "main.go"},
		{"a path from here", map[string]any{"pattern": "func", "include": "./*.go"}, "main.go"},
		{"a path to any depth", map[string]any{"pattern": "func", "include": "src/**/*.go"}, "src/deep/c.go"},
		{"all below", map[string]any{"pattern": "func", "include": "src/"}, "src/deep/c.go src/a.ts"},
		{"all but", map[string]any{"pattern": "func", "include": "!*.go"}, ".github/w.yml src/a.ts"},
		{"a folder", map[string]any{"pattern": "func", "path": "src"}, "src/deep/c.go src/a.ts"},
		{"a folder and a path in it", map[string]any{"pattern": "func", "path": "src", "include": "deep/*"}, "src/deep/c.go"},
		{"a folder and a path from here", map[string]any{"pattern": "func", "path": "src", "include": "src/deep/*"}, "src/deep/c.go"},
		{"an absolute path", map[string]any{"pattern": "func", "path": filepath.Join(p.dir, "src")}, "src/deep/c.go src/a.ts"},
		{"a file", map[string]any{"pattern": "func", "path": "main.go"}, "main.go"},
		{"a file without a match", map[string]any{"pattern": "none", "path": "main.go"}, ""},
		{"what is ignored, by name", map[string]any{"pattern": "func", "path": "build"}, "build/out.go"},
		{"an ignored file", map[string]any{"pattern": "func", "path": "build/out.go"}, "build/out.go"},
		{"names alone", map[string]any{"pattern": "", "include": "e*"}, "empty"},
		{"limit that is not reached", map[string]any{"pattern": "func", "path": "src", "limit": 3}, "src/deep/c.go src/a.ts"},
		{"limit that is just reached", map[string]any{"pattern": "func", "path": "src", "limit": 2}, "src/deep/c.go src/a.ts"},
		{
			"over the limit",
			map[string]any{"pattern": "func", "path": "src", "limit": 1},
			"src/deep/c.go (the first 1; there are more: narrow the search with path or include, or raise limit, up to 2000)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := strings.ReplaceAll(test.want, " ", "\n") + "\n"
			if files, note, cut := strings.Cut(test.want, " ("); cut {
				want = files + "\n(" + note + "\n"
			}
			if test.want == "" {
				want = "No matches found."
			}
			must.Same(t, want, toolstest.Output(t, p.call(t, "grep_files", test.arguments)))
		})
	}
}

func TestGrepFilesRefuses(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"file": "text\n", ".git/config": "text\n"})
	toolstest.Link(t, p.dir, map[string]string{"out": filepath.Dir(p.dir)})
	must.Do(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	p.refuses(t, "grep_files", []refused{
		{map[string]any{}, "expected \"pattern\", got nothing by that name"},
		{map[string]any{"pattern": ""}, "pattern must not be empty, unless include says which files to list"},
		{map[string]any{"pattern": "f(x"}, "missing closing ): `f(x`; to search for it as it stands, give f\\(x"},
		{map[string]any{"pattern": "(?=x)"}, "not valid in RE2 syntax (no look-around, no back-references)"},
		{map[string]any{"pattern": "a\nb"}, "lines are searched one by one; search for a part that stands on one line"},
		{map[string]any{"pattern": "x", "include": "[a"}, "include is not a valid glob: [a"},
		{map[string]any{"pattern": "x", "include": strings.Repeat("{f,fi}", 40) + "/**"}, "include has too many alternatives in braces"},
		{map[string]any{"pattern": "x", "limit": 0}, "limit must be greater than zero"},
		{map[string]any{"pattern": "x", "path": "missing"}, "there is no directory missing"},
		{map[string]any{"pattern": "x", "path": "file/x"}, "file/x"},
		{map[string]any{"pattern": "x", "path": ".git"}, "is in git's own directory"},
		{map[string]any{"pattern": "x", "path": "out"}, "is a link that leads out"},
		{map[string]any{"pattern": "x", "path": "pipe"}, "pipe is not a regular file"},
		{map[string]any{"pattern": "x", "path": "/etc"}, "is outside the working directory"},
		{map[string]any{"pattern": "x", "path": "/proc/self"}, "is outside the working directory"},
		{map[string]any{"pattern": "x", "path": filepath.Join(p.outputs, "x")}, "there is no output x"},
	})
}

func TestGrepFilesFollowsNoLink(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"real/file": "text\n"})
	outside := t.TempDir()
	toolstest.Write(t, outside, map[string]string{"secret": "text\n"})
	toolstest.Link(t, p.dir, map[string]string{"file": "real/file", "folder": "real", "out": outside, "secret": filepath.Join(outside, "secret"), "loop": "."})
	must.Same(t, "real/file\n", p.call(t, "grep_files", map[string]any{"pattern": "text"}).Output)
	must.Same(t, "folder/file\n", p.call(t, "grep_files", map[string]any{"pattern": "text", "path": "folder"}).Output, "a link that is named")
}

func TestGrepFilesSearchesWholeOutputs(t *testing.T) {
	p := newPlace(t)
	kept := filepath.Join(p.outputs, "call_1.txt")
	toolstest.Write(t, p.outputs, map[string]string{"call_1.txt": "needle\n", ".gitignore": "*\n"})
	for _, path := range []string{p.outputs, kept} {
		must.Same(t, kept+"\n", p.call(t, "grep_files", map[string]any{"pattern": "needle", "path": path}).Output, path)
	}
}

func TestGrepFilesQuotesNames(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"a\nb": "text\n", "ü": "text\n", "\xff": "text\n"})
	must.Same(t, "\"a\\nb\"\nü\n\"\\xff\"\n", p.call(t, "grep_files", map[string]any{"pattern": "text"}).Output)
}

func TestGrepFilesLimits(t *testing.T) {
	p := newPlace(t)
	const most = 2000
	texts := map[string]string{}
	for i := range most + 1 {
		texts[fmt.Sprintf("%02d/%d", i%50, i)] = "text\n"
	}
	toolstest.Write(t, p.dir, texts)
	for _, test := range []struct {
		limit any
		want  int
	}{{nil, 100}, {99, 99}, {most - 1, most - 1}, {most, most}, {most + 1, most}, {1e300, most}} {
		got := p.call(t, "grep_files", map[string]any{"pattern": "^text$", "limit": test.limit})
		if got.Failed || got.Detail["files"] != test.want || !strings.Contains(got.Output, "; there are more") {
			t.Errorf("limit %v: got %v files: %s", test.limit, got.Detail["files"], got.Output)
		}
	}
}

func TestCancelEndsCalls(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{"file": "text\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inputs := map[string]string{
		"read_file": `{"file_path":"file"}`, "list_dir": `{"dir_path":"."}`, "view_image": `{"path":"file"}`,
		"grep_files": `{"pattern":"text"}`,
	}
	for _, tool := range p.all {
		name := tool.Spec.Name
		if got, err := tool.Run(ctx, tools.Call{Input: inputs[name]}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestGrepFilesHonoursIgnoreCase(t *testing.T) {
	for _, ignoreCase := range []bool{false, true} {
		p := placeIn(t, t.TempDir(), files.Checkout{IgnoreCase: ignoreCase})
		p.files(t, map[string]string{".gitignore": "LOGS\n", "logs": "text\n"})
		want := "logs\n"
		if ignoreCase {
			want = "No matches found."
		}
		must.Same(t, want, p.call(t, "grep_files", map[string]any{"pattern": "text"}).Output, "ignoring case", ignoreCase)
	}
}
