package rules

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/policy/must"
)

// gitIn runs git in dir without anybody's configuration. `git check-ignore`
// says with status 1 that nothing is ignored.
func gitIn(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+dir)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return out.String()
}

// paths are asked of both; a folder ends with a slash.
var paths = []string{
	"a", "b", "ab", "A", "a.log", "b.log", "x.tar.gz", ".hidden", "a b", "a ", "#a", "!a", "a\\b", "[a]", "ä",
	"dir/", "dir/a", "dir/a.log", "dir/sub/", "dir/sub/a", "dir/sub/deep/a.log", "sub/", "sub/a", "foo/", "foo/bar", "foo/x/bar",
	"foo/x/y/bar", "foobar", "fo", "build/", "build/out", "src/build/", "src/build/out", "abcd", "a-b", "a]b", "a^b", "aXb", "a1b",
}

// asIgnored is the decision by the rules of a whole checkout: a folder that is
// ignored takes everything in it along.
func asIgnored(list Ignore, path string) bool {
	isDir := strings.HasSuffix(path, "/")
	path = strings.TrimSuffix(path, "/")
	for at := 0; at < len(path); at++ {
		if path[at] == '/' {
			if ignored, _ := list.Decide(path[:at], true, false); ignored {
				return true
			}
		}
	}
	ignored, _ := list.Decide(path, isDir, false)
	return ignored
}

// checkIgnore asks git, which looks at the disk for what is a folder.
func checkIgnore(t testing.TB, dir, file string) []string {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(file), 0o666))
	var asked strings.Builder
	for _, path := range paths {
		asked.WriteString(strings.TrimSuffix(path, "/") + "\x00")
	}
	out := gitIn(t, dir, asked.String(), "check-ignore", "--no-index", "--stdin", "-z")
	list := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

func ignoredByUs(file string) []string {
	list := ParseIgnore([]byte(file), "")
	ignored := []string{}
	for _, path := range paths {
		if asIgnored(list, path) {
			ignored = append(ignored, strings.TrimSuffix(path, "/"))
		}
	}
	return ignored
}

func worktree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "", "init", "-q")
	for _, path := range paths {
		full := filepath.Join(dir, path)
		if strings.HasSuffix(path, "/") {
			must.Do(t, os.MkdirAll(full, 0o777))
			continue
		}
		must.Write(t, full, "")
	}
	return dir
}

func TestIgnoreMatchesGit(t *testing.T) {
	dir := worktree(t)
	for _, file := range []string{
		"", "a\n", "/a\n", "*.log\n", "*.log\n!a.log\n", "dir/\n", "dir\n!dir/a\n", "dir/*\n!dir/a\n", "/dir/sub\n", "sub/\n", "**/build\n",
		"foo/**/bar\n", "foo/**\n", "**/bar\n", "foo/*/bar\n", "foo**/bar\n", "foo/*\n", "**\n", "*\n!*/\n!a\n", "a?b\n", "a[0-9]b\n", "a[!0-9]b\n",
		"a[^0-9]b\n", "[[]a]\n", "a[]]b\n", "a[]-]b\n", "a[[:digit:]]b\n", "a[[:upper:]]b\n", "a[b\n", "\\#a\n", "#a\n", "\\!a\n", "a\\ \n", "a \n",
		"a\\\\b\n", "\\a\n", "build/out\n", "src/**/out\n", "\xef\xbb\xbfa\n", "a\r\n", "/\n", "//a\n", "dir//a\n", "dir/sub/deep/\n", "!\n", "*/a\n",
		"dir/**/a\n", "dir/**/\n", "[A-Z]\n", "x.*.gz\n", "*.tar.*\n", "ä\n", "?\n", "/*\n!/dir\n/dir/*\n!/dir/a\n",
	} {
		want, got := checkIgnore(t, dir, file), ignoredByUs(file)
		must.Same(t, sortedCopy(want), sortedCopy(got), file)
	}
}

func sortedCopy(list []string) []string {
	return append([]string{}, slices.Sorted(slices.Values(list))...)
}

func TestIgnoreMatchesGitForRandomPatterns(t *testing.T) {
	dir := worktree(t)
	part := rapid.SampledFrom([]string{"a", "b", "*", "?", "**", "**/", "/", "dir", "sub", "foo", "bar", ".log", "[a-c]", "[!a]", "\\", "build", "x"})
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 3).Draw(rt, "lines") {
			if rapid.Bool().Draw(rt, "negated") {
				b.WriteByte('!')
			}
			b.WriteString(strings.Join(rapid.SliceOfN(part, 1, 5).Draw(rt, "parts"), ""))
			b.WriteByte('\n')
		}
		file := b.String()
		must.Same(rt, sortedCopy(checkIgnore(t, dir, file)), sortedCopy(ignoredByUs(file)), file)
	})
}

// Patterns that make a naive matcher take exponential time, or more stack than there is.
func TestMatchesHostilePatterns(t *testing.T) {
	for _, c := range []struct{ pattern, text string }{
		{strings.Repeat("*a", 30) + "*b", strings.Repeat("a", 200)},
		{strings.Repeat("**/", 60) + "x*b", strings.Repeat("a/", 300)},
		{strings.Repeat("**/a*/", 60) + "x*b", strings.Repeat("a/", 300)},
		{strings.Repeat("**/", 8<<20/3) + "x", "a/b"},
	} {
		must.Same(t, false, matcher{paths: true}.matches(c.pattern, c.text), c.pattern[:20])
	}
}
