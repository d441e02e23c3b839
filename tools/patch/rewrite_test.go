package patch_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
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

func TestRewriteKeepsDiffThatReapplies(t *testing.T) {
	var kept, asked []string
	w := newWorkplace(t, patch.Options{
		Keep:     neverKept(t),
		KeepDiff: func(diff string) error { kept = append(kept, diff); return nil },
		Ask: func(_ context.Context, edits []tree.Edit, diff string) (string, string) {
			asked = append(asked, diff)
			return "", "aside\n"
		},
		Ignored: func(path string) bool { return path == "new/b" },
	})
	got, err := w.patcher.Rewrite(t.Context(), []string{"greeting.txt", "new/b", filepath.Join(w.dir, "old.txt")}, shout)
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
	w.holds(t, want)
	must.Same(t, kept, asked)
	if len(kept) != 1 || !strings.Contains(kept[0], "+HELLO\n") {
		t.Errorf("kept %q", kept)
	}
	again := newWorkplace(t, patch.Options{})
	for _, step := range []struct {
		diff  string
		fails bool
	}{{"no diff\n", true}, {kept[0], false}, {kept[0], true}} {
		must.Same(t, step.fails, must.Get(again.patcher.ApplyDiff(t.Context(), step.diff))(t).Failed, step.diff)
	}
	again.holds(t, want)
}

var errUnfit = errors.New("does not fit")

func TestRefusedRewritesChangeNothing(t *testing.T) {
	for _, test := range []struct {
		name  string
		paths []string

		err  error  // of the function that rewrites
		want string // of the result
	}{
		{"what does not fit", []string{"old.txt"}, errUnfit, "does not fit"},
		{"protected", []string{"old.txt", ".github/ci.yml"}, nil, "change rejected: .github/ci.yml: it is protected"},
		{"protected, by a link", []string{"old.txt", "near/ci.yml"}, nil, "it is protected"},
		{"asked", []string{"old.txt", "no"}, nil, "change rejected: not today"},
		{"above the directory", []string{"old.txt", "../x"}, nil, "the path leaves"},
		{"absolute", []string{"old.txt", "/etc/passwd"}, nil, "/etc/passwd"},
		{"git's own directory", []string{"old.txt", ".git/config"}, nil, ".git"},
		{"no directory", []string{"old.txt/a"}, nil, "not a directory"},
		{"out by a link", []string{"old.txt", "out/x"}, nil, "out"},
		{"what was not read", []string{"old.txt"}, nil, "sub/x: it is to be changed twice, or was not read before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{
				Protect: protectGitHub, KeepDiff: neverKept(t),
				Ask: func(_ context.Context, edits []tree.Edit, _ string) (string, string) {
					if edits[0].Path == "no" {
						return "not today", ""
					}
					return "", ""
				},
			})
			before := toolstest.Tree(t, w.dir)
			got, err := w.patcher.Rewrite(t.Context(), test.paths, func(was tree.Texts) (tree.Texts, error) {
				if test.err != nil {
					return nil, test.err
				}
				if strings.HasPrefix(test.want, "sub/x") {
					was["sub/x"] = was["old.txt"]
				}
				return shout(was)
			})
			if err != nil || !got.Failed || !strings.Contains(got.Output, test.want) {
				t.Errorf("got %+v, %v, want %s", got, err, test.want)
			}
			w.unchanged(t, before)
		})
	}
}

// What is only looked at may be protected.
func TestRewriteMayReadProtectedFiles(t *testing.T) {
	w := newWorkplace(t, patch.Options{Protect: protectGitHub})
	got, err := w.patcher.Rewrite(t.Context(), []string{".github/ci.yml", "old.txt"}, func(was tree.Texts) (tree.Texts, error) {
		return tree.Texts{"old.txt": was[".github/ci.yml"]}, nil
	})
	if err != nil || got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
	w.holds(t, map[string]string{"old.txt": "on: push\n"})
}
