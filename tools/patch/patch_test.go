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

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// workplace is a directory with files, and apply_patch on it.
type workplace struct {
	dir     string
	outside string // an empty directory, to which the link out leads
	patcher *patch.Patcher
	d       *tools.Dispatcher
}

func newWorkplace(t *testing.T, o patch.Options) workplace {
	t.Helper()
	o.Dir = toolstest.Folder(t, t.TempDir())
	toolstest.Write(t, o.Dir.Path, map[string]string{"greeting.txt": "hello\nworld\n", "old.txt": "old\n", ".github/ci.yml": "on: push\n", "sub/x": ""})
	outside := t.TempDir()
	toolstest.Link(t, o.Dir.Path, map[string]string{"out": outside, "near": ".github"})
	p := patch.New(o)
	return workplace{o.Dir.Path, outside, p, &tools.Dispatcher{Registry: tools.New(p.Tool()), Outputs: new(tools.Outputs)}}
}

func (w workplace) apply(ctx context.Context, call tools.Call) tools.Result {
	call.ID = "call_1"
	if call.Name == "" {
		call.Name = "apply_patch"
	}
	return w.d.Dispatch(ctx, []tools.Call{call})[0]
}

// holds checks the texts of files; "" is that of one that is missing.
func (w workplace) holds(t *testing.T, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(w.dir, name)); string(got) != text || (err == nil) != (text != "") {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

// unchanged checks that the tree is as it was, and the directory outside.
func (w workplace) unchanged(t *testing.T, before map[string]string) {
	t.Helper()
	must.Same(t, before, toolstest.Tree(t, w.dir), "the tree has changed")
	must.Same(t, 1, len(toolstest.Tree(t, w.outside)), "outside there is")
}

func envelope(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

func function(t *testing.T, text string) string {
	t.Helper()
	input := must.Get(json.Marshal(map[string]string{"input": text}))(t)
	return string(input)
}

var everything = envelope(
	"*** Add File: new/a.txt", "+a",
	"*** Update File: greeting.txt", "@@", "-hello", "+hallo", " world",
	"*** Delete File: old.txt",
)

var layout = regexp.MustCompile(`(?s)^Exit code: (\d)\nWall time: \d+\.\d seconds\nOutput:\n(.*)\n$`)

func TestTextAppliesInAllOffers(t *testing.T) {
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
			if m == nil || m[1] != "0" || m[2] != "Success. Updated the following files:\nA new/a.txt\nM greeting.txt\nD old.txt" || got.Failed || !w.patcher.Tool().Mutates {
				t.Errorf("got %+v", got)
			}
			w.holds(t, map[string]string{"new/a.txt": "a\n", "greeting.txt": "hallo\nworld\n", "old.txt": "", ".github/ci.yml": "on: push\n"})
		})
	}
}

func TestApplyAddsNotes(t *testing.T) {
	w := newWorkplace(t, patch.Options{Offer: tools.Freeform, Ignored: func(path string) bool { return path != "greeting.txt" }})
	text := strings.Replace(everything, " world", "   world", 1)
	got := w.apply(t.Context(), tools.Call{Input: text, Form: tools.Freeform})
	if want := "D old.txt\nNote: greeting.txt: a hunk fits line 1 only with indentation left aside; "; got.Failed || !strings.Contains(got.Output, want) || !strings.Contains(got.Output, "\nNote: git ignores new/a.txt: no part") {
		t.Errorf("got %+v", got)
	}
}

func operation(t *testing.T, kind, path, diff string) tools.Call {
	t.Helper()
	input := must.Get(json.Marshal(map[string]string{"type": kind, "path": path, "diff": diff}))(t)
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
			if got.Detail["files"] == nil {
				t.Error("the transcript is not told of the files")
			}
			got.Detail = nil
			must.Same(t, test.want, got)
			must.Same(t, []string{test.kept}, kept, "kept")
			w.holds(t, map[string]string{test.file: test.text})
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
			before := toolstest.Tree(t, w.dir)
			got := w.apply(t.Context(), test.call)
			if !got.Failed || !strings.Contains(got.Output, test.want) || strings.HasPrefix(got.Output, "Exit code") {
				t.Errorf("got %+v, want a failure with %s", got, test.want)
			}
			w.unchanged(t, before)
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

// What cannot be kept changes nothing, and a change of nothing keeps nothing.
func TestUnkeptChangesNothing(t *testing.T) {
	full := errors.New("disk full")
	unkept := func(string) error { return full }
	w := newWorkplace(t, patch.Options{Keep: unkept, KeepDiff: unkept})
	before := toolstest.Tree(t, w.dir)
	must.Contain(t, toolstest.Failure(t, w.apply(t.Context(), tools.Call{Input: function(t, everything)})), "disk full")
	must.Is(t, full, must.Err(w.patcher.Rewrite(t.Context(), []string{"old.txt"}, shout)))
	toolstest.Output(t, must.Get(w.patcher.Rewrite(t.Context(), []string{"old.txt"}, func(was tree.Texts) (tree.Texts, error) { return was, nil }))(t))
	w.unchanged(t, before)
}

func TestApplyStartsInDirectory(t *testing.T) {
	for _, test := range []struct{ name, dir, path, want, refusal string }{
		{"the working directory", ".", "a.txt", "a.txt", ""},
		{"below", "sub", "a.txt", "sub/a.txt", ""},
		{"below, and up again", "sub", "../a.txt", "a.txt", ""},
		{"by a link", "near", "a.txt", ".github/a.txt", ""},
		{"an absolute path", ".", "DIR/a.txt", "a.txt", ""},
		{"missing", "gone", "a.txt", "", "gone: there is no such directory"},
		{"outside", "..", "a.txt", "", "where patches are applied"},
		{"outside by a link", "out", "a.txt", "", "where patches are applied"},
		{"below, and out", "sub", "../../a.txt", "", "apply_patch verification failed: "},
		{"a file", "old.txt", "a.txt", "", "apply_patch verification failed: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{})
			got := must.Get(w.patcher.Apply(t.Context(), filepath.Join(w.dir, test.dir), envelope("*** Add File: "+strings.Replace(test.path, "DIR", w.dir, 1), "+a")))(t)
			if test.refusal != "" {
				must.Contain(t, toolstest.Failure(t, got), test.refusal)
				return
			}
			must.Same(t, "Success. Updated the following files:\nA "+test.want+"\n", toolstest.Output(t, got))
			w.holds(t, map[string]string{test.want: "a\n"})
		})
	}
}

func TestRefusedPatchesChangeNothing(t *testing.T) {
	other := func(name, hunk string) string { return envelope("*** Update File: "+name, "@@", hunk, "+x") }
	for _, test := range []struct{ name, text, want string }{
		{"no patch", "hello", "apply_patch verification failed: "},
		{"lines that are not there", envelope("*** Add File: a", "+a", "*** Update File: greeting.txt", "@@", "-gone", "+x"), "apply_patch verification failed: "},
		{"no such file", envelope("*** Add File: a", "+a", "*** Delete File: missing"), "missing"},
		{"above the directory", envelope("*** Add File: a", "+a", "*** Add File: ../x", "+x"), "../x"},
		{"absolute", envelope("*** Add File: a", "+a", "*** Add File: OUTSIDE/x", "+x"), "OUTSIDE/x"},
		{"git's own directory", envelope("*** Add File: a", "+a", "*** Add File: .git/hooks/x", "+x"), ".git"},
		{"by a link that leads out", envelope("*** Add File: a", "+a", "*** Add File: out/x", "+x"), "out/x"},
		{"protected", envelope("*** Add File: a", "+a", "*** Add File: .github/x.yml", "+x"), "patch rejected: .github/x.yml: it is protected"},
		{"protected, spelt otherwise", envelope("*** Add File: a", "+a", "*** Delete File: sub/../.github/ci.yml"), "it is protected"},
		{"protected, by a link", envelope("*** Add File: a", "+a", "*** Delete File: near/ci.yml"), "it is protected"},
		{"protected source, by a link", envelope("*** Update File: near/ci.yml", "*** Move to: free", "@@", " on: push"), "it is protected"},
		{"protected destination", envelope("*** Update File: greeting.txt", "*** Move to: .github/g", "@@", " hello"), "it is protected"},
		{"UTF-16", other("utf16", "-one"), "the file is text in UTF-16LE, and patches are UTF-8; change it with commands, such as iconv -f UTF-16LE -t UTF-8, and back"},
		{"an addition to UTF-16", other("utf16", "+two"), "the file is text in UTF-16LE"},
		{"UTF-16 without a mark", other("unmarked", "-one"), "the file is text in UTF-16BE"},
		{"UTF-32", other("utf32", "-on"), "the file is text in UTF-32LE"},
		{"Latin-1", other("latin1", "-Grüße"), "the file is not UTF-8, so only its ASCII lines can be matched"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkplace(t, patch.Options{Protect: protectGitHub, Keep: neverKept(t)})
			toolstest.Write(t, w.dir, map[string]string{
				"utf16": "\xff\xfeo\x00n\x00e\x00\n\x00", "unmarked": "\x00o\x00n\x00e\x00\n", "utf32": "o\x00\x00\x00n\x00\x00\x00\n\x00\x00\x00", "latin1": "Gr\xfc\xdfe\n",
			})
			before, place := toolstest.Tree(t, w.dir), strings.NewReplacer("OUTSIDE", w.outside)
			got := w.apply(t.Context(), tools.Call{Input: function(t, place.Replace(test.text))})
			if !got.Failed || !strings.HasPrefix(got.Output, "Exit code: 1\n") || !strings.Contains(got.Output, place.Replace(test.want)) || got.Detail != nil {
				t.Errorf("got %+v, want a failure with %s", got, test.want)
			}
			if words, _ := got.Object.(string); words == "" || !strings.HasSuffix(got.Output, "\nOutput:\n"+words+"\n") {
				t.Errorf("a script gets %q of %q", words, got.Output)
			}
			w.unchanged(t, before)
		})
	}
}

// A model is told the format: by the grammar of a freeform tool, by the description of a function.
func TestSpecs(t *testing.T) {
	freeform, function := patch.New(patch.Options{Offer: tools.Freeform}).Tool().Spec, patch.New(patch.Options{}).Tool().Spec
	if !strings.Contains(freeform.Grammar, "*** Begin Patch") || freeform.Parameters != nil {
		t.Errorf("freeform: %+v", freeform)
	}
	if function.Grammar != "" || !json.Valid(function.Parameters) || !strings.Contains(function.Description, "*** Begin Patch") {
		t.Errorf("function: %+v", function)
	}
	must.Same(t, tools.Spec{Name: "apply_patch", Builtin: "apply_patch"}, patch.New(patch.Options{Offer: tools.Operation}).Tool().Spec, "built-in")
}
