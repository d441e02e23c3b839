package patch_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// shout rewrites files in capitals; those that are not there come to be.
func shout(was tree.Texts) (tree.Texts, error) {
	now := tree.Texts{}
	for name, text := range was {
		loud := "NEW\n"
		if text != nil {
			loud = strings.ToUpper(*text)
		}
		now[name] = &loud
	}
	return now, nil
}

func TestRewritesGoTheWayOfPatches(t *testing.T) {
	var kept, asked []string
	dir := toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)
	p := patch.New(patch.Options{
		Dir: dir, Keep: neverKept(t),
		KeepDiff: func(diff string) error { kept = append(kept, diff); return nil },
		Ask: func(_ context.Context, edits []tree.Edit, diff string) (string, string) {
			asked = append(asked, diff)
			return "", "aside\n"
		},
		Ignored: func(path string) bool { return path == "new/b" },
	})
	got, err := p.Rewrite(t.Context(), dir.Path, []string{"greeting.txt", "new/b", filepath.Join(dir.Path, "old.txt")}, shout)
	if err != nil || got.Failed {
		t.Fatalf("%+v, %v", got, err)
	}
	if !strings.HasPrefix(got.Output, "aside\nNote: git ignores new/b") || strings.Contains(got.Output, "Success") {
		t.Errorf("told %q", got.Output)
	}
	detail, _ := json.Marshal(got.Detail)
	if want := `{"files":[{"op":"M","path":"greeting.txt","added":2,"removed":2},{"op":"A","path":"new/b","added":1,"removed":0},{"op":"M","path":"old.txt","added":1,"removed":1}]}`; string(detail) != want {
		t.Errorf("detail %s", detail)
	}
	want := map[string]string{"greeting.txt": "HELLO\nWORLD\n", "new/b": "NEW\n", "old.txt": "OLD\n", ".github/ci.yml": "on: push\n"}
	if diff := cmp.Diff(want, files(t, dir.Path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(kept) != 1 || cmp.Diff(kept, asked) != "" || !strings.Contains(kept[0], "+HELLO\n") {
		t.Errorf("kept %q, asked %q", kept, asked)
	}
	again := toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)
	if got, err := patch.New(patch.Options{Dir: again, KeepDiff: neverKept(t)}).ApplyDiff(t.Context(), "no diff\n"); err != nil || !got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := patch.New(patch.Options{Dir: again}).ApplyDiff(t.Context(), kept[0]); err != nil || got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(want, files(t, again.Path)); diff != "" {
		t.Errorf("applied again (-want +got):\n%s", diff)
	}
	if got, err := patch.New(patch.Options{Dir: again}).ApplyDiff(t.Context(), kept[0]); err != nil || !got.Failed {
		t.Errorf("applied twice: %+v, %v", got, err)
	}
}

func TestARewriteOfNothingIsNotKept(t *testing.T) {
	dir := toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)
	p := patch.New(patch.Options{Dir: dir, KeepDiff: neverKept(t)})
	got, err := p.Rewrite(t.Context(), dir.Path, []string{"old.txt"}, func(was tree.Texts) (tree.Texts, error) { return was, nil })
	if err != nil || got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
}

var errUnfit = errors.New("does not fit")

func TestRefusedRewritesChangeNothing(t *testing.T) {
	for _, test := range []struct {
		name  string
		paths []string

		err  error
		want string // of the result; empty for an error
	}{
		{"what does not fit", []string{"old.txt"}, errUnfit, ""},
		{"protected", []string{"old.txt", ".github/ci.yml"}, nil, "change rejected: .github/ci.yml: it is protected"},
		{"protected, by a link", []string{"old.txt", "near/ci.yml"}, nil, "it is protected"},
		{"asked", []string{"old.txt", "no"}, nil, "change rejected: not today"},
		{"above the directory", []string{"old.txt", "../x"}, nil, "the path leaves"},
		{"absolute", []string{"old.txt", "/etc/passwd"}, nil, "/etc/passwd"},
		{"git's own directory", []string{"old.txt", ".git/config"}, nil, ".git"},
		{"no directory", []string{"old.txt/a"}, nil, "not a directory"},
		{"out by a link", []string{"old.txt", "out/x"}, nil, "out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)
			for link, target := range map[string]string{"out": t.TempDir(), "near": ".github"} {
				if err := os.Symlink(target, filepath.Join(dir.Path, link)); err != nil {
					t.Fatal(err)
				}
			}
			before := treeOf(t, dir.Path)
			p := patch.New(patch.Options{
				Dir: dir, Protect: protectGitHub, KeepDiff: neverKept(t),
				Ask: func(_ context.Context, edits []tree.Edit, _ string) (string, string) {
					if edits[0].Path == "no" {
						return "not today", ""
					}
					return "", ""
				},
			})
			got, err := p.Rewrite(t.Context(), dir.Path, test.paths, func(was tree.Texts) (tree.Texts, error) {
				if test.err != nil {
					return nil, test.err
				}
				return shout(was)
			})
			switch {
			case err != test.err:
				t.Errorf("error %v", err)
			case test.want != "" && (!got.Failed || !strings.Contains(got.Output, test.want)):
				t.Errorf("got %+v, want %s", got, test.want)
			}
			if diff := cmp.Diff(before, treeOf(t, dir.Path)); diff != "" {
				t.Errorf("the tree has changed (-before +after):\n%s", diff)
			}
		})
	}
}

// What is only looked at may be protected.
func TestARewriteMayReadWhatIsProtected(t *testing.T) {
	dir := toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)
	p := patch.New(patch.Options{Dir: dir, Protect: protectGitHub})
	got, err := p.Rewrite(t.Context(), dir.Path, []string{".github/ci.yml", "old.txt"}, func(was tree.Texts) (tree.Texts, error) {
		return tree.Texts{"old.txt": was[".github/ci.yml"]}, nil
	})
	if err != nil || got.Failed || files(t, dir.Path)["old.txt"] != "on: push\n" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestARewriteThatCannotBeKeptIsNotMade(t *testing.T) {
	dir := toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)
	full := errors.New("disk full")
	got, err := patch.New(patch.Options{Dir: dir, KeepDiff: func(string) error { return full }}).Rewrite(t.Context(), dir.Path, []string{"old.txt"}, shout)
	if !errors.Is(err, full) || got.Failed || files(t, dir.Path)["old.txt"] != "old\n" {
		t.Errorf("%+v, %v", got, err)
	}
}
