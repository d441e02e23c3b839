package patch_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// workplace is a directory with files, and apply_patch on it.
type workplace struct {
	dir     string
	patcher *patch.Patcher
	d       *tools.Dispatcher
}

func newWorkplace(t *testing.T, o patch.Options) workplace {
	t.Helper()
	o.Dir = toolstest.Folder(t, t.TempDir())
	root, err := o.Dir.Root()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"greeting.txt": "hello\nworld\n", "old.txt": "old\n", ".github/ci.yml": "on: push\n"} {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := patch.New(o)
	return workplace{o.Dir.Path, p, &tools.Dispatcher{Registry: tools.New(p.Tool()), Outputs: new(tools.Outputs)}}
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

func TestTextAppliesTheSameInAllOffers(t *testing.T) {
	for _, test := range []struct {
		name  string
		offer tools.Form
		call  tools.Call
	}{
		{"freeform", tools.Freeform, tools.Call{Input: everything, Form: tools.Freeform}},
		{"freeform tool called as a function", tools.Freeform, tools.Call{Input: function(t, everything)}},
		{"function", tools.Function, tools.Call{Input: function(t, everything)}},
		{"function called with bare text", tools.Function, tools.Call{Input: everything, Form: tools.Freeform}},
		{"built-in tool called with text", tools.Operation, tools.Call{Input: everything, Form: tools.Freeform}},
		{"built-in tool called as a function", tools.Operation, tools.Call{Input: function(t, everything)}},
		{"by another name and argument", tools.Function, tools.Call{Name: "applypatch", Input: strings.Replace(function(t, everything), `"input"`, `"patch"`, 1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Offer: test.offer})
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

func TestADoubtfulFitIsTold(t *testing.T) {
	for _, test := range []struct {
		name, text string
		lines      []string
		told       string
	}{
		{"exact", "def f():\n    a()\n", []string{"     a()", "+    b()"}, ""},
		{"indentation", "def f():\n    a()\n", []string{" a()", "+b()"}, "Note: code: a hunk fits line 2 only with indentation left aside"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Offer: tools.Freeform})
			if err := os.WriteFile(filepath.Join(w.dir, "code"), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			text := envelope(append([]string{"*** Update File: code", "@@"}, test.lines...)...)
			got := w.apply(t.Context(), tools.Call{Input: text, Form: tools.Freeform})
			if got.Failed || strings.Contains(got.Output, "Note: ") != (test.told != "") || !strings.Contains(got.Output, test.told) {
				t.Errorf("got %+v, want to be told %q", got, test.told)
			}
		})
	}
}

func TestIgnoredFilesAreTold(t *testing.T) {
	w := newWorkplace(t, patch.Options{Offer: tools.Freeform, Ignored: func(path string) bool { return path != "greeting.txt" }})
	got := w.apply(t.Context(), tools.Call{Input: everything, Form: tools.Freeform})
	if got.Failed || !strings.Contains(got.Output, "D old.txt\nNote: git ignores new/a.txt: no part") {
		t.Errorf("got %+v", got)
	}
}

func operation(t *testing.T, kind, path, diff string) tools.Call {
	t.Helper()
	input, err := json.Marshal(map[string]string{"type": kind, "path": path, "diff": diff})
	if err != nil {
		t.Fatal(err)
	}
	return tools.Call{Input: string(input), Form: tools.Operation}
}

func TestOperations(t *testing.T) {
	for _, test := range []struct {
		name string
		call tools.Call
		want tools.Result
		kept string
		file string
		text string
	}{
		{
			"create", operation(t, "create_file", "new/a.txt", "+a\n+\n+b"),
			tools.Result{Output: "Success. Updated the following files:\nA new/a.txt\n"},
			envelope("*** Add File: new/a.txt", "+a", "+", "+b"), "new/a.txt", "a\n\nb",
		},
		{
			"update", operation(t, "update_file", "greeting.txt", "@@\n-hello\n+hallo\n world\n"),
			tools.Result{Output: "Success. Updated the following files:\nM greeting.txt\n"},
			envelope("*** Update File: greeting.txt", "@@", "-hello", "+hallo", " world"), "greeting.txt", "hallo\nworld\n",
		},
		{
			"delete", operation(t, "delete_file", "old.txt", ""),
			tools.Result{Output: "Success. Updated the following files:\nD old.txt\n"},
			envelope("*** Delete File: old.txt"), "old.txt", "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var kept []string
			w := newWorkplace(t, patch.Options{Keep: func(text string) error { kept = append(kept, text); return nil }})
			got := w.apply(t.Context(), test.call)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(tools.Result{}, "Detail")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Detail["files"] == nil {
				t.Error("the transcript is not told of the files")
			}
			if diff := cmp.Diff([]string{test.kept}, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if text := files(t, w.dir)[test.file]; text != test.text {
				t.Errorf("%s is %q, want %q", test.file, text, test.text)
			}
		})
	}
}

func TestRefusedOperationsChangeNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		call tools.Call
		want string
	}{
		{"no JSON", tools.Call{Input: "x", Form: tools.Operation}, "the operation cannot be read"},
		{"no operation", tools.Call{Form: tools.Operation}, "the operation cannot be read"},
		{"unknown", operation(t, "move_file", "old.txt", ""), `"move_file" is no operation; it is create_file, update_file or delete_file`},
		{"no path", operation(t, "create_file", "", "+a"), "apply_patch verification failed: "},
		{"a path of two lines", operation(t, "create_file", "a\n*** Delete File: old.txt", "+a"), "a path is one line"},
		{"an envelope", operation(t, "update_file", "greeting.txt", envelope("*** Update File: greeting.txt", "@@", "-hello")), "apply_patch verification failed: "},
		{"lines that are not there", operation(t, "update_file", "greeting.txt", "@@\n-gone\n+x"), "apply_patch verification failed: greeting.txt: "},
		{"no such file", operation(t, "delete_file", "missing", ""), "there is no such file to delete"},
		{"above the directory", operation(t, "create_file", "../x", "+a"), "../x"},
		{"protected", operation(t, "create_file", ".github/x.yml", "+a"), "patch rejected: .github/x.yml: it is protected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Protect: protectGitHub, Keep: neverKept(t)})
			before := treeOf(t, w.dir)
			got := w.apply(t.Context(), test.call)
			if !got.Failed || !strings.Contains(got.Output, test.want) || strings.HasPrefix(got.Output, "Exit code") {
				t.Errorf("got %+v, want a failure with %s", got, test.want)
			}
			if diff := cmp.Diff(before, treeOf(t, w.dir)); diff != "" {
				t.Errorf("the tree has changed (-before +after):\n%s", diff)
			}
		})
	}
}

func protectGitHub(path string) string {
	if strings.HasPrefix(path, ".github/") {
		return "it is protected"
	}
	return ""
}

// neverKept is a Keep that must not be called.
func neverKept(t *testing.T) func(string) error {
	return func(text string) error {
		t.Errorf("kept %q", text)
		return nil
	}
}

func TestAPatchThatCannotBeKeptIsNotApplied(t *testing.T) {
	w := newWorkplace(t, patch.Options{Keep: func(string) error { return errors.New("disk full") }})
	before := treeOf(t, w.dir)
	got := w.apply(t.Context(), tools.Call{Input: function(t, everything)})
	if !got.Failed || !strings.Contains(got.Output, "disk full") {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(before, treeOf(t, w.dir)); diff != "" {
		t.Errorf("the tree has changed (-before +after):\n%s", diff)
	}
}

func TestApplyStartsInADirectory(t *testing.T) {
	for _, test := range []struct{ name, dir, path, want, refusal string }{
		{"the working directory", ".", "a.txt", "a.txt", ""},
		{"below", "sub", "a.txt", "sub/a.txt", ""},
		{"below, and up again", "sub", "../a.txt", "a.txt", ""},
		{"by a link", "near", "a.txt", ".github/a.txt", ""},
		{"missing", "gone", "a.txt", "", "gone: there is no such directory"},
		{"outside", "..", "a.txt", "", "where patches are applied"},
		{"outside by a link", "out", "a.txt", "", "where patches are applied"},
		{"below, and out", "sub", "../../a.txt", "", "apply_patch verification failed: "},
		{"a file", "old.txt", "a.txt", "", "apply_patch verification failed: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := patch.Options{Dir: toolstest.Folder(t, newWorkplace(t, patch.Options{}).dir)}
			root, err := o.Dir.Root()
			if err != nil {
				t.Fatal(err)
			}
			for link, target := range map[string]string{"out": t.TempDir(), "near": ".github"} {
				if err := os.Symlink(target, filepath.Join(o.Dir.Path, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := root.Mkdir("sub", 0o700); err != nil {
				t.Fatal(err)
			}
			got, err := patch.New(o).Apply(t.Context(), filepath.Join(o.Dir.Path, test.dir), envelope("*** Add File: "+test.path, "+a"))
			if err != nil {
				t.Fatal(err)
			}
			if test.refusal != "" {
				if !got.Failed || !strings.Contains(got.Output, test.refusal) {
					t.Errorf("got %+v, want a failure with %s", got, test.refusal)
				}
				return
			}
			text, err := root.ReadFile(test.want)
			if got.Failed || got.Output != "Success. Updated the following files:\nA "+test.want+"\n" || string(text) != "a\n" || err != nil {
				t.Errorf("got %+v, %q, %v", got, text, err)
			}
		})
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
			w := newWorkplace(t, patch.Options{Protect: protectGitHub, Keep: neverKept(t)})
			for link, target := range map[string]string{"out": filepath.Dir(outside), "near": ".github"} {
				if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(w.dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			before := treeOf(t, w.dir)
			got := w.apply(t.Context(), tools.Call{Input: function(t, test.text)})
			if !got.Failed || !strings.HasPrefix(got.Output, "Exit code: 1\n") || !strings.Contains(got.Output, test.want) || got.Detail != nil {
				t.Errorf("got %+v, want a failure with %s", got, test.want)
			}
			if words, _ := got.Object.(string); words == "" || !strings.HasSuffix(got.Output, "\nOutput:\n"+words+"\n") {
				t.Errorf("a script gets %q of %q", words, got.Output)
			}
			if diff := cmp.Diff(before, treeOf(t, w.dir)); diff != "" {
				t.Errorf("the tree has changed (-before +after):\n%s", diff)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was written outside")
			}
		})
	}
}

// TestPatchesOfOtherEncodings say which encoding it is, and change nothing.
func TestPatchesOfOtherEncodings(t *testing.T) {
	for _, test := range []struct{ name, text, hunk, want string }{
		{"UTF-16", "\xff\xfeo\x00n\x00e\x00\n\x00", "-one", "the file is text in UTF-16LE, and patches are UTF-8; change it with commands, such as iconv -f UTF-16LE -t UTF-8, and back"},
		{"an addition to UTF-16", "\xff\xfeo\x00n\x00e\x00\n\x00", "+two", "the file is text in UTF-16LE"},
		{"UTF-16 without a mark", "\x00o\x00n\x00e\x00\n", "-one", "the file is text in UTF-16BE"},
		{"UTF-32", "o\x00\x00\x00n\x00\x00\x00\n\x00\x00\x00", "-on", "the file is text in UTF-32LE"},
		{"Latin-1", "Gr\xfc\xdfe\n", "-Grüße", "the file is not UTF-8, so only its ASCII lines can be matched"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Keep: neverKept(t)})
			path := filepath.Join(w.dir, "other.txt")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := w.apply(t.Context(), tools.Call{Input: function(t, envelope("*** Update File: other.txt", "@@", test.hunk, "+x"))})
			if !got.Failed || !strings.Contains(got.Output, test.want) {
				t.Errorf("got %+v", got)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != test.text {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

// treeOf is every path below dir, with the text of files.
func treeOf(t *testing.T, dir string) []string {
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

func TestSpecs(t *testing.T) {
	freeform, function := patch.New(patch.Options{Offer: tools.Freeform}).Tool(), patch.New(patch.Options{}).Tool()
	if s := freeform.Spec; !strings.Contains(s.Grammar, "*** Begin Patch") || s.Parameters != nil {
		t.Errorf("freeform: %+v", s)
	}
	if s := function.Spec; s.Grammar != "" || !json.Valid(s.Parameters) || !strings.Contains(s.Description, "*** Begin Patch") {
		t.Errorf("function: %+v", s)
	}
	if diff := cmp.Diff(tools.Spec{Name: "apply_patch", Builtin: "apply_patch"}, patch.New(patch.Options{Offer: tools.Operation}).Tool().Spec); diff != "" {
		t.Errorf("built-in (-want +got):\n%s", diff)
	}
	if !freeform.Mutates || !function.Mutates {
		t.Error("apply_patch does not mutate")
	}
}
