package files_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	remove, err := gittest.Apart() // in memory: thousands of files are made
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { remove(); os.Exit(code) }))
}

// resolver is a working directory and the folder of outputs, with the tools.
type resolver struct {
	dir, outputs string
	d            *tools.Dispatcher
	all          []tools.Tool
}

func newPlace(t *testing.T) resolver {
	t.Helper()
	return placeIn(t, t.TempDir(), files.Checkout{})
}

// placeIn has a folder of a checkout as its working directory.
func placeIn(t testing.TB, dir string, checkout files.Checkout) resolver {
	t.Helper()
	outputs := filepath.Join(t.TempDir(), "outputs")
	all := files.New(files.Options{Dir: toolstest.Folder(t, dir), Outputs: outputs, Checkout: checkout})
	return resolver{dir, outputs, &tools.Dispatcher{Registry: tools.New(all...), Outputs: new(tools.Outputs)}, all}
}

// refused is a call that is refused.
type refused struct {
	arguments map[string]any
	want      string
}

func (p resolver) refuses(t *testing.T, tool string, calls []refused) {
	t.Helper()
	for _, c := range calls {
		if got := p.call(t, tool, c.arguments); !got.Failed || !strings.Contains(got.Output, c.want) || strings.Contains(got.Output, "L1:") {
			t.Errorf("%v: got %+v, want a failure with %s", c.arguments, got, c.want)
		}
	}
}

func (p resolver) read(t *testing.T, arguments map[string]any) tools.Result {
	t.Helper()
	return p.call(t, "read_file", arguments)
}

func (p resolver) call(t testing.TB, tool string, arguments map[string]any) tools.Result {
	t.Helper()
	input := must.Get(json.Marshal(arguments))(t)
	return p.d.Dispatch(t.Context(), []tools.Call{{ID: "1", Name: tool, Input: string(input)}})[0]
}

func TestReadFile(t *testing.T) {
	for _, test := range []struct {
		name, text string
		arguments  map[string]any
		want       string
	}{
		{"whole", "a\n\nb\n", nil, "L1: a\nL2: \nL3: b\n"},
		{"no final newline", "a\nb", nil, "L1: a\nL2: b\n"},
		{"CRLF", "a\r\nb\r\n", nil, "L1: a\nL2: b\n"},
		{"only a newline", "\n", nil, "L1: \n"},
		{"empty", "", nil, "The file is empty."},
		{"tabs stay", "\tx\n", nil, "L1: \tx\n"},
		{"offset", "a\nb\nc\n", map[string]any{"offset": 2}, "L2: b\nL3: c\n"},
		{"limit", "a\nb\nc\n", map[string]any{"limit": 2}, "L1: a\nL2: b\n(more lines follow; go on with offset 3)\n"},
		{"limit at the end", "a\nb\nc\n", map[string]any{"offset": 2, "limit": 2}, "L2: b\nL3: c\n"},
		{"limit beyond the end", "a\n", map[string]any{"limit": 1e300}, "L1: a\n"},
		{"the longest line that is not cut", strings.Repeat("x", 500) + "\n", nil, "L1: " + strings.Repeat("x", 500) + "\n"},
		{"a longer one", strings.Repeat("x", 501) + "\nb\n", nil, "L1: " + strings.Repeat("x", 500) + "… (line cut; it has 501 bytes)\nL2: b\n"},
		{"cut between runes", strings.Repeat("x", 499) + "€€", nil, "L1: " + strings.Repeat("x", 499) + "… (line cut; it has 505 bytes)\n"},
		{"500 bytes before CRLF", strings.Repeat("x", 500) + "\r\n", nil, "L1: " + strings.Repeat("x", 500) + "\n"},
		{"a line longer than any buffer", strings.Repeat("x", 1<<20) + "\nb", nil, "L1: " + strings.Repeat("x", 500) + "… (line cut; it has 1048576 bytes)\nL2: b\n"},
		{"not UTF-8", "\xe4\n", nil, "L1: \uFFFD\n(some lines are not UTF-8: patches can't match what is shown as \uFFFD; change those lines with a command)\n"},
		{"not UTF-8 behind the page", "a\n\xe4\n", map[string]any{"limit": 1}, "L1: a\n(more lines follow; go on with offset 2)\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			toolstest.Write(t, p.dir, map[string]string{"sub/file": test.text})
			arguments := map[string]any{"file_path": "sub/file"}
			maps.Copy(arguments, test.arguments)
			if got := p.read(t, arguments); got.Output != test.want || got.Failed {
				t.Errorf("got %+v\nwant %q", got, test.want)
			}
		})
	}
}

// encodings are files with the text "func\n" in encodings other than UTF-8, by their names.
var encodings = map[string]string{
	"utf16":    "\xff\xfef\x00u\x00n\x00c\x00\n\x00",
	"unmarked": "f\x00u\x00n\x00c\x00\n\x00",
	"utf16be":  "\xfe\xff\x00f\x00u\x00n\x00c\x00\n",
	"utf32":    "\xff\xfe\x00\x00f\x00\x00\x00u\x00\x00\x00n\x00\x00\x00c\x00\x00\x00\n\x00\x00\x00",
}

func TestReadFileRefuses(t *testing.T) {
	p := newPlace(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	toolstest.Write(t, outside, map[string]string{"secret": "s\n"})
	toolstest.Write(t, p.dir, encodings)
	toolstest.Write(t, p.dir, map[string]string{"file": "a\nb\n", "binary": "a\x00b", ".git/config": "[core]\n", "sub/.GIT": "gitdir: x\n"})
	toolstest.Link(t, p.dir, map[string]string{"out": secret, "up": "../../..", "git": ".git", "loop": "loop", "gone": "nowhere"})
	must.Do(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	var calls []refused
	for _, test := range []struct {
		path      string
		arguments map[string]any
		want      string
	}{
		{"missing", nil, "there is no file missing"},
		{"gone", nil, "there is no file gone"},
		{"", nil, "the path is empty"},
		{"sub", nil, "sub is a directory"},
		{".", nil, ". is a directory"},
		{"pipe", nil, "pipe is not a regular file"},
		{"binary", nil, "binary is a binary file"},
		{"utf16", nil, "utf16 is text in UTF-16LE, which is not read here; change it with commands, such as iconv -f UTF-16LE -t UTF-8, and back"},
		{"utf16", map[string]any{"mode": "indentation"}, "utf16 is text in UTF-16LE"},
		{"unmarked", nil, "unmarked is text in UTF-16LE"},
		{"utf16be", nil, "utf16be is text in UTF-16BE"},
		{"utf32", nil, "utf32 is text in UTF-32LE"},
		{".git/config", nil, "is in git's own directory"},
		{"sub/.GIT", nil, "is in git's own directory"},
		{"git/config", nil, "is in git's own directory"},
		{"../x", nil, "../x is outside the working directory"},
		{"/etc/passwd", nil, "/etc/passwd is outside the working directory"},
		{"/proc/self/environ", nil, "is outside the working directory"},
		{secret, nil, "is outside the working directory"},
		{"out", nil, "out is a link that leads out of the working directory"},
		{"up/etc/passwd", nil, "is a link that leads out"},
		{"loop", nil, "loop can't be read"},
		{"file/x", nil, "file/x"},
		{"file\x00", nil, "can't be read"},
		{"file", map[string]any{"offset": 0}, "offset must be a 1-indexed line number"},
		{"file", map[string]any{"offset": -3}, "offset must be a 1-indexed line number"},
		{"file", map[string]any{"limit": 0}, "limit must be greater than zero"},
		{"file", map[string]any{"offset": 3}, "offset exceeds file length: the last line is 2"},
		{"file", map[string]any{"offset": "x"}, "offset: expected number, got string x"},
	} {
		arguments := map[string]any{"file_path": test.path}
		maps.Copy(arguments, test.arguments)
		calls = append(calls, refused{arguments, test.want})
	}
	p.refuses(t, "read_file", calls)
}

func TestReadFileAcceptsEquivalentPaths(t *testing.T) {
	p := newPlace(t)
	toolstest.Write(t, p.dir, map[string]string{"sub/file": "a\n"})
	real := must.Get(filepath.EvalSymlinks(p.dir))(t)
	toolstest.Link(t, p.dir, map[string]string{"near": "sub/file", "absolute": filepath.Join(p.dir, "sub/file"), "folder": "sub"})
	for _, path := range []string{
		"sub/file", "./sub//file", "sub/../sub/file", filepath.Join(p.dir, "sub/file"), filepath.Join(real, "sub/file"), "near", "absolute", "folder/file",
	} {
		must.Same(t, "L1: a\n", p.read(t, map[string]any{"path": path}).Output, path)
	}
}

func TestReadFileReadsWholeOutputs(t *testing.T) {
	p := newPlace(t)
	kept := filepath.Join(p.outputs, "call_1.txt")
	must.Same(t, "read_file: there is no output call_1.txt", toolstest.Failure(t, p.read(t, map[string]any{"file_path": kept})), "before there are outputs")
	toolstest.Write(t, filepath.Dir(p.outputs), map[string]string{"outputs/call_1.txt": "kept\n", "events.jsonl": "x\n"})
	must.Same(t, "L1: kept\n", p.read(t, map[string]any{"file_path": kept}).Output)
	for _, beside := range []string{filepath.Join(p.outputs, "../events.jsonl"), filepath.Dir(kept)} {
		if got := p.read(t, map[string]any{"file_path": beside}); !got.Failed {
			t.Errorf("%s: got %+v", beside, got)
		}
	}
}

func TestReadFileReturnsPages(t *testing.T) {
	p := newPlace(t)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "%d %s\n", i+1, strings.Repeat("x", 40))
	}
	toolstest.Write(t, p.dir, map[string]string{"long": text.String()})
	pages := p.pages(t, "read_file", map[string]any{"file_path": "long"}, "(more lines follow; go on with offset ")
	must.Same(t, 5000, strings.Count("\n"+strings.Join(pages, ""), "\nL"), "the pages have")
}

// pages returns the outputs of a call and of those that go on where a page says.
func (p resolver) pages(t *testing.T, tool string, arguments map[string]any, goOn string) (outputs []string) {
	t.Helper()
	for more := true; more && len(outputs) < 20; {
		outputs = append(outputs, toolstest.Output(t, p.call(t, tool, arguments)))
		_, after, found := strings.Cut(outputs[len(outputs)-1], goOn)
		if more = found; more {
			var offset int
			must.Get(fmt.Sscan(after, &offset))(t)
			arguments["offset"] = offset
		}
	}
	must.Lack(t, strings.Join(outputs, ""), "truncated")
	return outputs
}
