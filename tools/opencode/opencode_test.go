package opencode_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/opencode"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a working directory with the tools.
type bench struct {
	*testing.T
	dir   string
	tools *tools.Dispatcher
	plan  plan.Plan
}

// newBench has a link to a folder beside the working directory, which has secret.txt.
func newBench(t *testing.T, texts map[string]string) *bench {
	t.Helper()
	b := &bench{T: t, dir: filepath.Join(t.TempDir(), "work")}
	for name, text := range texts {
		b.write(name, text)
	}
	b.write("../outside/secret.txt", "secret\n")
	toolstest.Link(t, b.dir, map[string]string{"out": "../outside", "link.txt": "a.txt"})
	dir := toolstest.Folder(t, b.dir)
	all := opencode.New(opencode.Options{
		Files: files.Options{Dir: dir, Outputs: t.TempDir()}, KnownFiles: new(opencode.KnownFiles), AcceptsImages: true, Patcher: patch.New(patch.Options{Dir: dir}),
		SetPlan: func(p plan.Plan) error { b.plan = p; return nil }, Plan: func() plan.Plan { return b.plan },
	})
	b.tools = &tools.Dispatcher{Registry: tools.New(all...), Outputs: new(tools.Outputs)}
	return b
}

func (b *bench) write(name, text string) {
	b.Helper()
	path := filepath.Join(b.dir, name)
	toolstest.Write(b, b.dir, map[string]string{name: text})
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // files of one age are sorted by their names
	must.Do(b, os.Chtimes(path, when, when))
}

type args map[string]any

// call gives what a tool answers; refusals begin with a mark.
func (b *bench) call(tool string, a args) string {
	b.Helper()
	input := must.Get(json.Marshal(a))(b)
	result := b.tools.Dispatch(b.Context(), []tools.Call{{ID: "1", Number: 1, Name: tool, Input: string(input)}})[0]
	if result.Failed {
		return "refused: " + result.Output
	}
	return result.Output
}

// tree is all that there is, with modes, and where links lead.
func (b *bench) tree() map[string]string {
	b.Helper()
	return toolstest.Tree(b, filepath.Dir(b.dir))
}

func TestToolsFormatOutput(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree", "empty": "", "src/b.go": "func b()\n", "src/deep/c.go": "x\n\nfunc c()\n", "src/a/b/c/d": "", "bin": "\x00func\n", "long": strings.Repeat("x", 2001), "dot.gif": "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"})
	for _, test := range []struct {
		tool string
		args args
		want string
	}{
		{"read", args{"filePath": "a.txt"}, "<path>a.txt</path>\n<type>file</type>\n<content>\n1: one\n2: two\n3: three\n\n(End of file - total 3 lines)\n</content>"},
		{"read", args{"filePath": "a.txt", "offset": 2, "limit": 1}, "<path>a.txt</path>\n<type>file</type>\n<content>\n2: two\n\n(Showing lines 2-2 of 3. Use offset=3 to continue.)\n</content>"},
		{"read", args{"filePath": "a.txt", "offset": -1, "limit": 0}, "<path>a.txt</path>\n<type>file</type>\n<content>\n1: one\n\n(Showing lines 1-1 of 3. Use offset=2 to continue.)\n</content>"},
		{"read", args{"filePath": "link.txt", "limit": 1e300}, "<path>link.txt</path>\n<type>file</type>\n<content>\n1: one\n2: two\n3: three\n\n(End of file - total 3 lines)\n</content>"},
		{"read", args{"filePath": "empty"}, "<path>empty</path>\n<type>file</type>\n<content>\n\n(End of file - total 0 lines)\n</content>"},
		{"read", args{"filePath": "long"}, "<path>long</path>\n<type>file</type>\n<content>\n1: " + strings.Repeat("x", 2000) + "… (line cut; it has 2001 bytes)\n\n(End of file - total 1 lines)\n</content>"},
		{"read", args{"filePath": "dot.gif"}, "dot.gif: 1×1, png, 89 bytes"},
		{"glob", args{"pattern": "*.go"}, "src/b.go\nsrc/deep/c.go"},
		{"glob", args{"pattern": "*.go", "path": "src/deep"}, "src/deep/c.go"},
		{"glob", args{"pattern": "*.rs"}, "No files found"},
		{"grep", args{"pattern": `func \w`, "include": "*.go"}, "Found 2 matches\n\nsrc/b.go:\n  Line 1: func b()\n\nsrc/deep/c.go:\n  Line 3: func c()\n"},
		{"grep", args{"pattern": "func", "path": "src/b.go"}, "Found 1 matches\n\nsrc/b.go:\n  Line 1: func b()\n"},
		{"grep", args{"pattern": "none"}, "No files found"},
		{"list", args{"path": "src"}, b.dir + "/src/\n  a/\n    b/\n      c/\n  b.go\n  deep/\n    c.go\n"},
		{"todoread", args{}, "[]"},
		{"todowrite", args{"todos": []args{{"content": "<b>", "status": "pending", "id": "7"}, {"content": "y", "status": "cancelled", "priority": "low"}}}, "[\n  {\n    \"content\": \"<b>\",\n    \"status\": \"pending\",\n    \"id\": \"7\"\n  },\n  {\n    \"content\": \"y\",\n    \"status\": \"cancelled\",\n    \"priority\": \"low\"\n  }\n]"},
		{"todoread", args{}, "[\n  {\n    \"content\": \"<b>\",\n    \"status\": \"pending\"\n  }\n]"},
	} {
		must.Same(t, test.want, strings.TrimSuffix(b.call(test.tool, test.args), "\n")+map[bool]string{true: "\n"}[strings.HasSuffix(test.want, "\n")], test.tool, test.args)
	}
}

// TestRefusals has each refusal leave the tree as it is, byte for byte.
func TestRefusals(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\none\n", "unread.txt": "one\n", "bin": "\x00\x01", "wide": "\xff\xfex\x00\n\x00", "d/x": ""})
	b.call("read", args{"filePath": "a.txt"})
	before := b.tree()
	for _, test := range []struct {
		tool string
		args args
		want string
	}{
		{"edit", args{"filePath": "a.txt", "oldString": "one", "newString": "x"}, "edit: a.txt: oldString stands at more than one place: lines 1, 3; give more"},
		{"edit", args{"filePath": "a.txt", "oldString": "one", "newString": "one"}, "the same"},
		{"edit", args{"filePath": "a.txt", "oldString": "twoo", "newString": "x"}, "nearest place: line 2"},
		{"edit", args{"filePath": "a.txt", "oldString": "", "newString": "x"}, "give the text to replace"},
		{"edit", args{"filePath": "unread.txt", "oldString": "one", "newString": "x"}, "read unread.txt first"},
		{"edit", args{"filePath": "none.txt", "oldString": "one", "newString": "x"}, "an empty oldString makes it"},
		{"edit", args{"filePath": "../new.txt", "oldString": "", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": "../outside/secret.txt", "oldString": "secret", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": "out/new.txt", "oldString": "", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": "a\x00b", "oldString": "", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": "", "oldString": "", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": "d", "oldString": "", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": "a.txt/b", "oldString": "", "newString": "x"}, "edit: "},
		{"edit", args{"filePath": strings.Repeat("d/", 3000) + "x", "oldString": "", "newString": "x"}, "longer or deeper than a path may be"},
		{"write", args{"filePath": "a.txt\x00", "content": "x"}, "write: "},
		{"write", args{"filePath": strings.Repeat("d/", 300) + "x", "content": "x"}, "longer or deeper than a path may be"},
		{"write", args{"filePath": "unread.txt", "content": "x"}, "read unread.txt first"},
		{"write", args{"filePath": "out/secret.txt", "content": "x"}, "write: "},
		{"write", args{"filePath": "/etc/agent-ci-none", "content": "x"}, "write: "},
		{"read", args{"filePath": "../outside/secret.txt"}, "read: "},
		{"read", args{"filePath": "out/secret.txt"}, "read: "},
		{"read", args{"filePath": "d"}, "read: "},
		{"read", args{"filePath": "bin"}, "read: bin is a binary file"},
		{"read", args{"filePath": "unread"}, "there is no file unread; did you mean unread.txt?"},
		{"read", args{"filePath": "none.png"}, "read: there is no file none.png"},
		{"read", args{"filePath": "wide"}, "wide is text in UTF-16LE"},
		{"read", args{"filePath": "a\x00"}, "read: "},
		{"grep", args{"pattern": "(["}, "grep: "},
		{"grep", args{"pattern": "x", "path": "../outside"}, "grep: "},
		{"glob", args{"pattern": "*", "path": "../outside"}, "glob: "},
		{"list", args{"path": "../outside"}, "list: "},
		{"list", args{"path": "a.txt"}, "list: "},
		{"todowrite", args{"todos": []args{{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}}}, "todowrite: "},
	} {
		got := b.call(test.tool, test.args)
		if words, is := strings.CutPrefix(got, "refused: "); !is || !strings.Contains(words, test.want) || strings.Contains(got, "secret\n") || len(words) > 2000 {
			t.Errorf("%s %.100v: %.300s", test.tool, test.args, got)
		}
		must.Same(t, before, b.tree(), test.tool, test.args, "changed the tree")
	}
}

// TestEditsRequireUnchangedFiles has a file changed in every way behind the model.
func TestEditsRequireUnchangedFiles(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\n", "b.txt": "one\n"})
	edit := func(name, old, now string) string {
		b.Helper()
		return b.call("edit", args{"filePath": name, "oldString": old, "newString": now})
	}
	wants := func(what, got, want string) {
		b.Helper()
		must.Contain(t, got, want)
	}
	b.call("read", args{"filePath": "link.txt", "limit": 1})
	wants("read by a link", edit("a.txt", "one", "two"), "applied")
	wants("edited before", edit("./d/../a.txt", "two", "three"), "applied")
	wants("by an absolute path", edit(filepath.Join(b.dir, "a.txt"), "three", "four"), "applied")
	b.write("a.txt", "four!\n")
	wants("changed by others", edit("a.txt", "four", "five"), "has changed since it was read")
	wants("written over, changed by others", b.call("write", args{"filePath": "a.txt", "content": "x"}), "has changed since it was read")
	b.call("read", args{"filePath": "a.txt"})
	wants("read again", edit("a.txt", "four!", "five"), "applied")
	b.write("b.txt", "five\n")
	must.Do(t, os.Rename(filepath.Join(b.dir, "b.txt"), filepath.Join(b.dir, "a.txt")))
	wants("replaced by one that holds the same", edit("a.txt", "five", "six"), "applied")
	wants("the other one is gone", edit("b.txt", "five", "six"), "no such file")
	wants("made", edit("new.txt", "", "1\n"), "applied")
	wants("made and edited", edit("new.txt", "1", "2"), "applied")
	must.Do(t, os.Remove(filepath.Join(b.dir, "new.txt")))
	b.write("new.txt", "other\n")
	wants("gone and made by others", edit("new.txt", "other", "2"), "has changed since it was read")
}

func TestEditsKeepFileForm(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "\ufeffone\r\ntwo\r\n", "run.sh": "echo\n", "last": "x\ny"})
	must.Do(t, os.Chmod(filepath.Join(b.dir, "run.sh"), 0o755))
	for _, name := range []string{"a.txt", "run.sh", "last"} {
		b.call("read", args{"filePath": name})
	}
	b.call("edit", args{"filePath": "a.txt", "oldString": "one\ntwo", "newString": "1\n2\n3"})
	b.call("edit", args{"filePath": "run.sh", "oldString": "echo", "newString": "echo it"})
	b.call("edit", args{"filePath": "last", "oldString": "y", "newString": "z"})
	all := b.tree()
	for name, want := range map[string]string{"a.txt": "-rw------- \ufeff1\r\n2\r\n3\r\n", "run.sh": "-rwxr-xr-x echo it\n", "last": "-rw------- x\nz"} {
		must.Same(t, want, all["work/"+name], name)
	}
	b.call("write", args{"filePath": "a.txt", "content": "x\ny\n"})
	must.Same(t, "-rw------- \ufeffx\r\ny\r\n", b.tree()["work/a.txt"], "written over")
}
