package patch_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// workplace is a directory with files, and apply_patch on it.
type workplace struct {
	dir string
	d   *tools.Dispatcher
}

func newWorkplace(t *testing.T, o patch.Options) workplace {
	t.Helper()
	o.Dir = t.TempDir()
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	o.Root = root
	for name, text := range map[string]string{"greeting.txt": "hello\nworld\n", "old.txt": "old\n", ".github/ci.yml": "on: push\n"} {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return workplace{o.Dir, &tools.Dispatcher{Registry: tools.New(patch.New(o)), Outputs: new(tools.Outputs)}}
}

func (w workplace) apply(ctx context.Context, call tools.Call) tools.Result {
	call.ID = "call_1"
	if call.Name == "" {
		call.Name = "apply_patch"
	}
	return w.d.Dispatch(ctx, []tools.Call{call})[0]
}

// files are the files below dir with their texts.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func envelope(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

func function(t *testing.T, text string) string {
	t.Helper()
	input, err := json.Marshal(map[string]string{"input": text})
	if err != nil {
		t.Fatal(err)
	}
	return string(input)
}

var everything = envelope(
	"*** Add File: new/a.txt", "+a",
	"*** Update File: greeting.txt", "@@", "-hello", "+hallo", " world",
	"*** Delete File: old.txt",
)

var layout = regexp.MustCompile(`(?s)^Exit code: (\d)\nWall time: \d+\.\d seconds\nOutput:\n(.*)\n$`)

func TestBothFormsApplyTheSamePatch(t *testing.T) {
	for _, test := range []struct {
		name     string
		freeform bool
		call     tools.Call
	}{
		{"freeform", true, tools.Call{Input: everything, Freeform: true}},
		{"freeform tool called as a function", true, tools.Call{Input: function(t, everything)}},
		{"function", false, tools.Call{Input: function(t, everything)}},
		{"function called with bare text", false, tools.Call{Input: everything, Freeform: true}},
		{"by another name and argument", false, tools.Call{Name: "applypatch", Input: strings.Replace(function(t, everything), `"input"`, `"patch"`, 1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Freeform: test.freeform})
			got := w.apply(t.Context(), test.call)
			m := layout.FindStringSubmatch(got.Output)
			if m == nil || m[1] != "0" || m[2] != "Success. Updated the following files:\nA new/a.txt\nM greeting.txt\nD old.txt" || got.Failed {
				t.Errorf("got %+v", got)
			}
			want := map[string]string{"new/a.txt": "a\n", "greeting.txt": "hallo\nworld\n", ".github/ci.yml": "on: push\n"}
			if diff := cmp.Diff(want, files(t, w.dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTranscriptIsToldOfTheFiles(t *testing.T) {
	w := newWorkplace(t, patch.Options{})
	got := w.apply(t.Context(), tools.Call{Input: function(t, envelope(
		"*** Add File: a", "+1", "+2",
		"*** Update File: greeting.txt", "*** Move to: sub/greeting.txt", "@@", "-hello", " world",
		"*** Delete File: old.txt",
	))})
	detail, err := json.Marshal(got.Detail)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"files":[{"op":"A","path":"a","added":2,"removed":0},` +
		`{"op":"D","path":"old.txt","added":0,"removed":1},` +
		`{"op":"M","path":"sub/greeting.txt","from":"greeting.txt","added":0,"removed":1}]}`
	if diff := cmp.Diff(want, string(detail)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got.Output)
	}
}

func TestAbsolutePathsInTheDirectory(t *testing.T) {
	w := newWorkplace(t, patch.Options{})
	real, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{w.dir, real} {
		got := w.apply(t.Context(), tools.Call{Input: function(t, envelope("*** Add File: "+filepath.Join(dir, "b.txt"), "+b"))})
		if got.Failed || files(t, w.dir)["b.txt"] != "b\n" {
			t.Errorf("got %+v", got)
		}
	}
}

func TestRefusedPatchesChangeNothing(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "x")
	for _, test := range []struct{ name, text, want string }{
		{"no patch", "hello", "apply_patch verification failed: "},
		{"lines that are not there", envelope("*** Add File: a", "+a", "*** Update File: greeting.txt", "@@", "-gone", "+x"), "apply_patch verification failed: "},
		{"no such file", envelope("*** Add File: a", "+a", "*** Delete File: missing"), "missing"},
		{"above the directory", envelope("*** Add File: a", "+a", "*** Add File: ../x", "+x"), "../x"},
		{"absolute", envelope("*** Add File: a", "+a", "*** Add File: "+outside, "+x"), outside},
		{"git's own directory", envelope("*** Add File: a", "+a", "*** Add File: .git/hooks/x", "+x"), ".git"},
		{"by a link that leads out", envelope("*** Add File: a", "+a", "*** Add File: out/x", "+x"), "out/x"},
		{"protected", envelope("*** Add File: a", "+a", "*** Add File: .github/x.yml", "+x"), "patch rejected: .github/x.yml: it is protected"},
		{"protected, spelt otherwise", envelope("*** Add File: a", "+a", "*** Delete File: sub/../.github/ci.yml"), "it is protected"},
		{"protected, by a link", envelope("*** Add File: a", "+a", "*** Delete File: near/ci.yml"), "it is protected"},
		{"protected destination", envelope("*** Update File: greeting.txt", "*** Move to: .github/g", "@@", " hello"), "it is protected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Protect: func(path string) string {
				if strings.HasPrefix(path, ".github/") {
					return "it is protected"
				}
				return ""
			}})
			for link, target := range map[string]string{"out": filepath.Dir(outside), "near": ".github"} {
				if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(w.dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			before := tree(t, w.dir)
			got := w.apply(t.Context(), tools.Call{Input: function(t, test.text)})
			if !got.Failed || !strings.HasPrefix(got.Output, "Exit code: 1\n") || !strings.Contains(got.Output, test.want) || got.Detail != nil {
				t.Errorf("got %+v, want a failure with %s", got, test.want)
			}
			if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
				t.Errorf("the tree has changed (-before +after):\n%s", diff)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was written outside")
			}
		})
	}
}

// tree is every path below dir, with the text of files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := ""
		if entry.Type().IsRegular() {
			read, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(read)
		}
		found = append(found, path+"\n"+text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestACancelledPatchIsAborted(t *testing.T) {
	w := newWorkplace(t, patch.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := tree(t, w.dir)
	got := w.apply(ctx, tools.Call{Input: function(t, everything)})
	if !got.Failed || !strings.HasPrefix(got.Output, "aborted after ") {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
		t.Errorf("the tree has changed (-before +after):\n%s", diff)
	}
}

func TestSpecs(t *testing.T) {
	freeform, function := patch.New(patch.Options{Freeform: true}), patch.New(patch.Options{})
	if s := freeform.Spec(); s.Grammar == nil || s.Grammar.Syntax != "lark" || !strings.Contains(s.Grammar.Definition, "*** Begin Patch") || s.Parameters != nil {
		t.Errorf("freeform: %+v", s)
	}
	if s := function.Spec(); s.Grammar != nil || !json.Valid(s.Parameters) || !strings.Contains(s.Description, "*** Begin Patch") {
		t.Errorf("function: %+v", s)
	}
	if !freeform.Mutates() || !function.Mutates() {
		t.Error("apply_patch does not mutate")
	}
}
