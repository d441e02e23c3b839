package unified_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/unified"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// changed is a repository whose last commit changes files in every way.
func changed(t *testing.T) gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	r.Write("lines", strings.Repeat("same\n", 20)+"old\n"+strings.Repeat("same\n", 20))
	r.Write("no end", "a\nb")
	r.Write("binary", "a\x00b\n")
	r.Write("executable", "x\n")
	r.Write("turned", "a file\n")
	r.Write("Ä \"quoted\" \\", "q\n")
	r.Write("emptied", "e\n")
	r.Seed()
	r.Write("lines", "first\n"+strings.Repeat("same\n", 20)+"new\n"+strings.Repeat("same\n", 20))
	r.Write("no end", "a\nc")
	r.Write("binary", "a\x00c\n")
	r.Chmod("executable", 0o755)
	r.Chmod("README", 0o755)
	r.Write("README", "one\n2\n")
	r.Remove("turned", "gone")
	r.Link("README", "turned")
	r.Write("Ä \"quoted\" \\", "r\n")
	r.Write("emptied", "")
	r.Write("new empty", "")
	r.Write("new file", "n\n")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+r.Git("rev-parse", "HEAD")+",module")
	r.Git("add", "-A", "--", ".", ":!module")
	r.Git("commit", "-q", "-m", "change")
	return r
}

// differences are those of the last commit, and the store that has them.
func differences(t *testing.T, r gittest.Repo) (*objects.Store, []objects.Difference) {
	t.Helper()
	s := objects.Open("", r.Path(".git"))
	t.Cleanup(func() { s.Close() })
	id := func(spec string) plumbing.Hash { return plumbing.NewHash(r.Git("rev-parse", spec)) }
	list, err := s.Differences(t.Context(), id("HEAD~1^{tree}"), id("HEAD^{tree}"))
	if err != nil {
		t.Fatal(err)
	}
	return s, list
}

func TestThePatchIsOneThatGitTakes(t *testing.T) {
	r := changed(t)
	s, list := differences(t, r)
	var patch strings.Builder
	for _, d := range list {
		if d.Path == "binary" || d.Path == "module" {
			continue // only named, and no file
		}
		if err := unified.Write(&patch, s, d); err != nil {
			t.Fatal(err)
		}
	}
	want := r.Files()
	want["binary"] = "a\x00b\n"
	r.Git("checkout", "-q", "-f", "HEAD~1")
	r.GitWith(nil, []byte(patch.String()), "apply", "--whitespace=nowarn", "-")
	gittest.Same(t, "files", want, r.Files())
}

func TestWhatStandsAboveTheHunksIsAsGitWritesIt(t *testing.T) {
	r := changed(t)
	s, list := differences(t, r)
	for _, d := range list {
		var got strings.Builder
		if err := unified.Write(&got, s, d); err != nil {
			t.Fatal(err)
		}
		want := r.Git("diff", "--no-renames", "--full-index", "--submodule=short", "HEAD~1", "HEAD", "--", ":(literal)"+d.Path)
		gittest.Same(t, d.Path, headers(want), headers(got.String()))
	}
}

// headers are the lines of a patch that are no lines of a file.
func headers(patch string) (list []string) {
	for line := range strings.SplitSeq(patch, "\n") {
		if line != "" && !strings.ContainsRune(" @\\", rune(line[0])) && (line[0] != '-' && line[0] != '+' || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")) {
			list = append(list, line)
		}
	}
	return list
}

func TestCountLinesAsGit(t *testing.T) {
	r := changed(t)
	s, list := differences(t, r)
	for _, d := range list {
		insertions, deletions, binary, err := unified.CountLines(s, d)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d\t%d", insertions, deletions)
		if binary {
			got = "-\t-"
		}
		want := r.Git("diff", "--no-renames", "--numstat", "-z", "HEAD~1", "HEAD", "--", ":(literal)"+d.Path)
		gittest.Same(t, "numstat", strings.TrimSuffix(want, "\x00"), got+"\t"+d.Path)
	}
}

func TestAFileThatIsGoneIsAnError(t *testing.T) {
	r := changed(t)
	id := r.Git("rev-parse", "HEAD:lines")
	r.Remove(".git/objects/" + id[:2] + "/" + id[2:])
	s, list := differences(t, r)
	for _, d := range list {
		if d.Path != "lines" {
			continue
		}
		if err := unified.Write(&strings.Builder{}, s, d); !errors.As(err, new(*objects.DamagedError)) {
			t.Errorf("Write: %v", err)
		}
		if _, _, _, err := unified.CountLines(s, d); !errors.As(err, new(*objects.DamagedError)) {
			t.Errorf("CountLines: %v", err)
		}
	}
}

func TestIsBinary(t *testing.T) {
	for text, want := range map[string]bool{"": false, "text\n": false, "a\x00": true, strings.Repeat("a", 8000) + "\x00": false, strings.Repeat("a", 7999) + "\x00": true} {
		if unified.IsBinary([]byte(text)) != want {
			t.Errorf("%d bytes: %t", len(text), !want)
		}
	}
}
