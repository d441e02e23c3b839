package files_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	"pgregory.net/rapid"
)

// git runs git in a folder, without anybody's settings.
func git(t interface {
	Helper()
	Fatalf(string, ...any)
}, dir, input string, arguments ...string,
) string {
	t.Helper()
	cmd := exec.Command("git", arguments...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/none")
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && (exit.ExitCode() != 1 || arguments[0] != "check-ignore") {
		t.Fatalf("git %v: %v: %s", arguments, err, exit.Stderr)
	} else if !ok && err != nil {
		t.Fatalf("git %v: %v", arguments, err)
	}
	return string(out)
}

var (
	somePart    = rapid.SampledFrom([]string{"a", "b", "foo", "bar", "build", "x.log", "keep.log", "c d", "#e", "!f", ".hid", "F"})
	somePattern = rapid.SampledFrom([]string{
		"a", "b/", "/foo", "foo/", "foo/**", "**/foo", "foo/**/bar", "a/b", "*.log", "!keep.log", "!*.log", "*", "!*/", "/*", "!/foo", "build",
		"!build/", "foo/*", "!foo/bar", "[ab]", "?", `\#e`, `\!f`, "# a", "", "c d", "a ", `c\ d`, ".*", "!a", "**", "**/", "/**/a", "f*", "b/**", "!b/a", "x.*", "a/*/b", "f",
	})
)

// somePaths draws files that can stand beside each other: none is a folder of
// another.
func somePaths(t *rapid.T) []string {
	var all []string
	for range rapid.IntRange(1, 25).Draw(t, "files") {
		file := path.Join(rapid.SliceOfN(somePart, 1, 4).Draw(t, "path")...)
		clash := func(other string) bool {
			return other == file || strings.HasPrefix(other, file+"/") || strings.HasPrefix(file, other+"/")
		}
		if !slices.ContainsFunc(all, clash) {
			all = append(all, file)
		}
	}
	return all
}

// tree is a random checkout.
type tree struct {
	top      string
	all      []string // files, sorted
	checkout files.Checkout
}

func someTree(t *testing.T, r *rapid.T, empty string) tree {
	top := filepath.Join(empty, "tree")
	must.Do(t, os.RemoveAll(top))
	must.Do(t, os.CopyFS(filepath.Join(top, ".git"), os.DirFS(filepath.Join(empty, ".git"))))
	patterns := func() string {
		return strings.Join(rapid.SliceOfN(somePattern, 0, 6).Draw(r, "patterns"), "\n") + "\n"
	}
	all, tracked := somePaths(r), []string{}
	for _, file := range all {
		toolstest.Write(t, top, map[string]string{file: "text\n"})
		if rapid.IntRange(0, 5).Draw(r, "is tracked") == 0 {
			tracked = append(tracked, file)
		}
	}
	if len(tracked) > 0 {
		git(r, top, "./"+strings.Join(tracked, "\x00./"), "add", "-f", "--pathspec-from-file=-", "--pathspec-file-nul")
	}
	slices.Sort(tracked)
	for _, file := range all {
		if rapid.IntRange(0, 3).Draw(r, "has rules") == 0 {
			beside := path.Join(path.Dir(file), ".gitignore")
			toolstest.Write(t, top, map[string]string{beside: patterns()})
			all = append(all, beside)
		}
	}
	exclude := patterns()
	toolstest.Write(t, top, map[string]string{".git/info/exclude": exclude})
	slices.Sort(all)
	return tree{top, slices.Compact(all), files.Checkout{
		Top: toolstest.Folder(t, top), Exclude: rules.ParseIgnore([]byte(exclude), ""),
		Tracked: func() []string { return tracked },
	}}
}

// TestIgnoresSameFilesAsGit compares with git check-ignore on random trees.
func TestIgnoresSameFilesAsGit(t *testing.T) {
	empty := t.TempDir()
	git(t, empty, "", "init", "-q", "--template=")
	rapid.Check(t, func(r *rapid.T) {
		random := someTree(t, r, empty)
		want := random.notIgnored(r)
		for _, file := range random.all {
			ignored, err := random.checkout.Ignores(random.top, file)
			if err != nil || ignored == slices.Contains(want, file) {
				r.Fatalf("Ignores(%s) = %t, %v", file, ignored, err)
			}
		}
		folder := path.Dir(rapid.SampledFrom(random.all).Draw(r, "folder"))
		inFolder := below(folder, want)
		if folder != "." && git(r, random.top, folder, "check-ignore", "--no-index", "--stdin") != "" {
			inFolder = below(folder, random.all) // asked for by name
		}
		top := placeIn(t, random.top, random.checkout)
		sub := placeIn(t, filepath.Join(random.top, folder), random.checkout)
		for _, test := range []struct {
			name string
			p    resolver
			path string
			want []string
		}{
			{"all of the checkout", top, ".", want},
			{"a folder of it", top, folder, inFolder},
			{"a working directory in it", sub, ".", inFolder},
		} {
			if got := searched(t, test.p, test.path); !slices.Equal(test.want, got) {
				r.Fatalf("grep_files in %s (%s): %q, want %q", test.name, folder, got, test.want)
			}
			if got := listed(t, test.p, test.path); !slices.Equal(test.want, got) {
				r.Fatalf("list_dir of %s (%s): %q, want %q", test.name, folder, got, test.want)
			}
		}
	})
}

// notIgnored are the files that git does not ignore.
func (tr tree) notIgnored(r *rapid.T) []string {
	ignored := strings.Split(git(r, tr.top, strings.Join(tr.all, "\x00"), "check-ignore", "-z", "--stdin"), "\x00")
	return slices.DeleteFunc(slices.Clone(tr.all), func(file string) bool { return slices.Contains(ignored, file) })
}

func below(dir string, paths []string) []string {
	if dir == "." {
		return paths
	}
	var rest []string
	for _, file := range paths {
		if inside, ok := strings.CutPrefix(file, dir+"/"); ok {
			rest = append(rest, inside)
		}
	}
	return rest
}

// searched are the files that grep_files finds, relative to the folder.
func searched(t *testing.T, p resolver, dir string) []string {
	got := p.call(t, "grep_files", map[string]any{"pattern": "", "include": "*", "path": dir, "limit": 2000})
	if got.Failed {
		t.Fatal(got.Output)
	}
	if got.Output == "No matches found." {
		return nil
	}
	paths := strings.Split(strings.TrimSuffix(got.Output, "\n"), "\n")
	slices.Sort(paths)
	return below(dir, paths)
}

// listed are the files that list_dir shows.
func listed(t *testing.T, p resolver, dir string) []string {
	got := p.call(t, "list_dir", map[string]any{"dir_path": dir, "depth": 100, "limit": 10_000})
	if got.Failed {
		t.Fatal(got.Output)
	}
	var paths, folders []string
	for line := range strings.Lines(got.Output) {
		name := strings.TrimLeft(strings.TrimSuffix(line, "\n"), " ")
		level := (len(line) - 1 - len(name)) / 2
		switch {
		case strings.HasPrefix(line, "Absolute path: ") || strings.HasPrefix(line, "("):
		case strings.HasSuffix(name, "/"):
			folders = append(folders[:level], name)
		default:
			paths = append(paths, strings.Join(folders[:level], "")+name)
		}
	}
	slices.Sort(paths)
	return paths
}
