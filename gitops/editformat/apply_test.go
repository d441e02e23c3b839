package editformat_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/policy/must"
)

// files are texts by path; those without a text are not there.
type files map[string]string

// applied reads an answer and applies its edits to files.
func applied(t *testing.T, f editformat.Format, answer string, was files, known ...string) (files, []string, error) {
	t.Helper()
	parsed := editformat.Parse(f, answer)
	if len(parsed.Problems) > 0 {
		return nil, nil, errors.New(strings.Join(parsed.Problems, "\n"))
	}
	texts := map[string]*string{}
	for _, path := range editformat.Paths(parsed.Edits, known...) {
		texts[path] = nil
		if text, ok := was[path]; ok {
			texts[path] = &text
		}
	}
	before := maps.Clone(texts)
	now, notes, err := editformat.Apply(f, parsed.Edits, texts)
	must.Same(t, texts, before, "what was is changed")
	if err != nil {
		must.Same(t, nil, now, "texts beside an error")
		return nil, nil, err
	}
	after := maps.Clone(was)
	if after == nil {
		after = files{}
	}
	for path, text := range now {
		delete(after, path)
		if text != nil {
			after[path] = *text
		}
	}
	return after, notes, nil
}

// applying is one answer: what files it makes of others, or what is said of it.
type applying struct {
	name   string
	answer string
	was    files
	known  []string
	now    files    // nil: it is refused
	said   []string // parts of the notes, or of the error
}

func testApply(t *testing.T, f editformat.Format, tests []applying) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now, notes, err := applied(t, f, test.answer, test.was, test.known...)
			said := strings.Join(notes, "\n")
			if err != nil {
				said = err.Error()
			}
			if (err != nil) != (test.now == nil) || !maps.Equal(now, test.now) {
				t.Errorf("now %q\nwant %q\nsaid %s", now, test.now, said)
			}
			must.Contain(t, said, test.said...)
			if test.said == nil && said != "" && test.now != nil {
				t.Errorf("said: %s", said)
			}
		})
	}
}

// block is a SEARCH/REPLACE block.
func block(search, replace string) string {
	return "<<<<<<< SEARCH\n" + search + "=======\n" + replace + ">>>>>>> REPLACE\n"
}

func fenced(path, language, text string) string {
	return path + "\n```" + language + "\n" + text + "```\n"
}

func TestDiff(t *testing.T) {
	const lines = "one\ntwo\nthree\n"
	bc := block("two\n", "2\n")
	now := files{"a.go": "one\n2\nthree\n"}
	testApply(t, editformat.Diff, []applying{
		{name: "of UTF-16", answer: fenced("a.go", "go", bc), was: files{"a.go": "\xff\xfex\x00\n\x00"}, said: []string{"the file is text in UTF-16LE, and edits are UTF-8"}},
		{name: "path above the fence", answer: "Do this:\n\n" + fenced("a.go", "go", bc), was: files{"a.go": lines}, now: now},
		{name: "path below the fence", answer: "```go\na.go\n" + bc + "```\n", was: files{"a.go": lines}, now: now},
		{name: "path above the marker", answer: "a.go\n" + bc, was: files{"a.go": lines}, now: now},
		{name: "no final newline of the answer", answer: strings.TrimSuffix("a.go\n"+bc, "\n"), was: files{"a.go": lines}, now: now},
		{name: "path in the fence's line", answer: "```a.go\n" + bc + "```\n", was: files{"a.go": lines}, now: now},
		{name: "path in a fence of its own", answer: " ```python\na.go\n```\n```python\n" + bc + "```\n", was: files{"a.go": lines}, now: now},
		{name: "blank line below the path", answer: "a.go\n\n```go\n" + bc + "```\n", was: files{"a.go": lines}, now: now},
		{name: "heading", answer: fenced("## `a.go`:", "", bc), was: files{"a.go": lines}, now: now},
		{name: "bold with a colon inside", answer: fenced("**a.go:**", "", bc), was: files{"a.go": lines}, now: now},
		{name: "bold with a colon outside", answer: fenced("**`a.go`**:", "", bc), was: files{"a.go": lines}, now: now},
		{name: "dot and slash", answer: fenced("./a.go", "", bc), was: files{"a.go": lines}, now: now},
		{name: "blanks in a quoted path", answer: fenced("`a b.go`", "", bc), was: files{"a b.go": lines}, now: files{"a b.go": "one\n2\nthree\n"}},
		{name: "well-known name", answer: fenced("Makefile", "", bc), was: files{"Makefile": lines}, now: files{"Makefile": "one\n2\nthree\n"}},
		{name: "tildes", answer: "a.go\n~~~~go\n" + bc + "~~~~\n", was: files{"a.go": lines}, now: now},
		{name: "long fence", answer: "a.go\n`````go\n" + bc + "`````\n", was: files{"a.go": lines}, now: now},
		{
			name: "marks of XML for a fence", answer: "a.go\n" + bc + "b.go\n<source>go\n" + block("one\n", "1\n") + "</source>\n\nnew.go\n<pre>\n" + block("", "x\n") + "</pre>\n",
			was: files{"a.go": lines, "b.go": lines}, now: files{"a.go": "one\n2\nthree\n", "b.go": "1\ntwo\nthree\n", "new.go": "x\n"},
		},
		{name: "closing fence longer", answer: "a.go\n```go\n" + bc + "````\n", was: files{"a.go": lines}, now: now},
		{name: "CRLF answer", answer: strings.ReplaceAll(fenced("a.go", "go", bc), "\n", "\r\n"), was: files{"a.go": lines}, now: now},
		{
			name: "short and long markers", answer: "a.go\n<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>>>> REPLACE\n",
			was: files{"a.go": lines}, now: now,
		},
		{name: "blanks below markers", answer: "a.go\n<<<<<<< SEARCH \ntwo\n======= \n2\n>>>>>>> REPLACE \n", was: files{"a.go": lines}, now: now},
		{name: "angle bracket", answer: "a.go\n<<<<<<< SEARCH>\ntwo\n=======\n2\n>>>>>>> REPLACE\n", was: files{"a.go": lines}, now: now},
		{
			name: "second block takes the path of the first", answer: "```go\na.go\n" + bc + "\n...\n\n" + block("one\n", "1\n") + "```\n",
			was: files{"a.go": lines}, now: files{"a.go": "1\n2\nthree\n"},
		},
		{
			name: "block in another fence without a path", answer: fenced("a.go", "", bc) + "And then:\n```\n" + block("one\n", "1\n") + "```\n",
			was: files{"a.go": lines}, now: files{"a.go": "1\n2\nthree\n"}, said: []string{"block 2 names no file and was applied to a.go, that of the block before"},
		},
		{
			name: "block without a path or a fence", answer: "a.go\n" + bc + "And then:\n" + block("one\n", "1\n"),
			was: files{"a.go": lines}, now: files{"a.go": "1\n2\nthree\n"}, said: []string{"block 2 names no file and was applied to a.go, that of the block before"},
		},
		{
			name: "fence not closed before the next", answer: "a.go\n```go\n" + bc + "b.go\n```go\n" + block("x\n", "y\n") + "```\n",
			was: files{"a.go": lines, "b.go": "x\n"}, now: files{"a.go": "one\n2\nthree\n", "b.go": "y\n"},
		},
		{
			name: "no path, one file that fits", answer: "```\n" + bc + "```\n", was: files{"a.go": lines, "b.go": "x\n"}, known: []string{"a.go", "b.go"},
			now: files{"a.go": "one\n2\nthree\n", "b.go": "x\n"}, said: []string{"block 1 names no file and was applied to a.go"},
		},
		{
			name: "no path, two files that fit", answer: "```\n" + bc + "```\n", was: files{"a.go": lines, "b.go": lines}, known: []string{"a.go", "b.go"},
			said: []string{"it names no file"},
		},
		{name: "no path, no file known", answer: "```\n" + bc + "```\n", was: files{"a.go": lines}, said: []string{"no path, line 2 of the answer", "it names no file"}},
		{name: "no path for a new file", answer: "```\n" + block("", "x\n") + "```\n", known: []string{"a.go"}, said: []string{"it names no file"}},
		{name: "new file", answer: fenced("d/new.go", "go", block("", "x\n")), now: files{"d/new.go": "x\n"}},
		{name: "new file by a blank line", answer: fenced("new.go", "go", block("\n", "x\n")), now: files{"new.go": "x\n"}},
		{name: "new empty file", answer: fenced("new.go", "go", block("", "")), now: files{"new.go": ""}},
		{name: "empty file filled", answer: fenced("a.go", "go", block("", "x\n")), was: files{"a.go": ""}, now: files{"a.go": "x\n"}},
		{name: "empty SEARCH for a file with text", answer: fenced("a.go", "go", block("", "x\n")), was: files{"a.go": "y\n"}, said: []string{"the file has text already"}},
		{name: "no such file", answer: fenced("a.go", "go", bc), was: files{}, said: []string{"there is no such file"}},
		{name: "file elsewhere", answer: fenced("a.go", "go", bc), was: files{"d/a.go": lines}, known: []string{"d/a.go"}, said: []string{"there is no such file"}},
		{
			name: "order of blocks", answer: fenced("a.go", "go", block("one\n", "two\nfour\n")+block("two\nfour\n", "five\n")),
			was: files{"a.go": "one\n"}, now: files{"a.go": "five\n"},
		},
		{
			name: "blocks in any order", answer: fenced("a.go", "go", block("three\n", "3\n")+block("one\n", "1\n")),
			was: files{"a.go": lines}, now: files{"a.go": "1\ntwo\n3\n"},
		},
		{
			name: "in two places", answer: fenced("a.go", "go", block("x\n", "y\n")), was: files{"a.go": "x\nz\nx\n"},
			said: []string{"fits more than one place: line 1, line 3;"},
		},
		{
			name: "in two places, one of which a block above adds", answer: fenced("a.go", "go", block("z\n", "x\n")+block("x\n", "y\n")), was: files{"a.go": "x\nz\n"},
			said: []string{"Block 2", "line 1, what a block above adds", "Blocks that fit: 1."},
		},
		{
			name: "repeated", answer: fenced("a.go", "go", bc+bc), was: files{"a.go": lines}, now: now,
			said: []string{"block 2 says what block 1 has done"},
		},
		{
			name: "addition repeated", answer: fenced("a.go", "go", block("one\n", "one\n1\n")+block("one\n", "one\n1\n")), was: files{"a.go": lines},
			now: files{"a.go": "one\n1\ntwo\nthree\n"}, said: []string{"block 2 says what block 1 has done"},
		},
		{
			name: "trailing blanks", answer: fenced("a.go", "go", block("one\ntwo\n", "one\n2\n")), was: files{"a.go": "one \t\ntwo  \nthree\n"},
			now: files{"a.go": "one \t\n2\nthree\n"}, said: []string{"only with blanks at the ends of lines left aside"},
		},
		{
			name: "missing indentation", answer: fenced("a.go", "go", block("one\n  two\n", "1\n  2\n\n3\n")), was: files{"a.go": "\t\tone\n\t\t  two\n"},
			now: files{"a.go": "\t\t1\n\t\t  2\n\n\t\t3\n"}, said: []string{"only with another indentation"},
		},
		{
			name: "some indentation missing", answer: fenced("a.go", "go", block(" one\n two\n", " 1\n     2\n")), was: files{"a.go": "    one\n    two\n"},
			now: files{"a.go": "    1\n        2\n"}, said: []string{"another indentation"},
		},
		{
			name: "too much indentation", answer: fenced("a.go", "go", block("      one\n        two\n", "      1\n        2\n")), was: files{"a.go": "  one\n    two\n"},
			now: files{"a.go": "  1\n    2\n"}, said: []string{"another indentation"},
		},
		{
			name: "indentation that is not uniform", answer: fenced("a.go", "go", block("one\ntwo\n", "1\n2\n")), was: files{"a.go": "  one\n    two\n"},
			said: []string{"its lines are not in the file", "nearest place: line 1"},
		},
		{
			name: "other indentation in two places", answer: fenced("a.go", "go", block("one\n", "1\n")), was: files{"a.go": "  one\n    one\n"},
			said: []string{"more than one place: line 1, line 2"},
		},
		{
			name: "exact goes before other indentation", answer: fenced("a.go", "go", block("  one\n", "  1\n")), was: files{"a.go": "one\n  one\n"},
			now: files{"a.go": "one\n  1\n"}, said: []string{"block 1 was applied at line 2 of a.go, where another place may be meant: line 1 fits too, with another indentation."},
		},
		{
			name: "blank line too much above", answer: fenced("a.go", "go", block("\n  line1\n  line2\n", "  new1\n  new2\n")), was: files{"a.go": "    line1\n    line2\n    line3\n"},
			now: files{"a.go": "    new1\n    new2\n    line3\n"}, said: []string{"without the blank lines at its ends"},
		},
		{
			name: "blank line too much below, on both sides", answer: fenced("a.go", "go", block("two\n\n", "2\n\n")), was: files{"a.go": lines},
			now: now, said: []string{"without the blank lines at its ends"},
		},
		{
			name: "blank line too much below what is added", answer: fenced("a.go", "go", block("two\nthree\n\n", "two\nthree\n\nfour\n\n")), was: files{"a.go": lines},
			now: files{"a.go": lines + "\nfour\n"}, said: []string{"without the blank lines at its ends"},
		},
		{
			name: "lines left out", answer: fenced("a.go", "go", block("one\n...\nthree\n", "1\n...\n3\n")), was: files{"a.go": lines},
			now: files{"a.go": "1\ntwo\n3\n"}, said: []string{"lines left out"},
		},
		{
			name: "lines left out at the beginning", answer: fenced("a.go", "go", block("...\nthree\n", "...\n3\n")), was: files{"a.go": lines},
			now: files{"a.go": "one\ntwo\n3\n"}, said: []string{"lines left out"},
		},
		{
			name: "dots of the file itself", answer: fenced("a.pyi", "python", block("def f():\n  ...\n", "def g():\n  ...\n")), was: files{"a.pyi": "def f():\n  ...\n"},
			now: files{"a.pyi": "def g():\n  ...\n"},
		},
		{
			name: "lines left out on one side", answer: fenced("a.go", "go", block("one\n...\nthree\n", "1\n3\n")), was: files{"a.go": lines},
			said: []string{"its lines are not in the file"},
		},
		{
			name: "lines left out in the wrong order", answer: fenced("a.go", "go", block("three\n...\none\n", "3\n...\n1\n")), was: files{"a.go": lines},
			said: []string{"its lines are not in the file"},
		},
		{
			name: "lines left out below what is there twice", answer: fenced("a.go", "go", block("one\n...\n}\n", "1\n...\n}\n")), was: files{"a.go": "one\n}\n}\n"},
			said: []string{`part 2 of it`, "more than one place"},
		},
		{
			name: "nothing says where lines go", answer: fenced("a.go", "go", block("one\n...\n", "one\n...\nfour\n")), was: files{"a.go": lines},
			said: []string{"its lines are not in the file"},
		},
		{
			name: "CRLF", answer: fenced("a.go", "go", block("one\ntwo\n", "one\n2\n2b\n")), was: files{"a.go": "one\r\ntwo\r\nthree\r\n"},
			now: files{"a.go": "one\r\n2\r\n2b\r\nthree\r\n"},
		},
		{
			name: "mixed line endings", answer: fenced("a.go", "go", block("b\nc\nd\n", "b\nx\nc\ny\n")), was: files{"a.go": "a\nb\r\nc\nd\r\ne\n"},
			now: files{"a.go": "a\nb\r\nx\r\nc\ny\r\ne\n"},
		},
		{
			name: "byte order mark", answer: fenced("a.go", "go", block("one\n", "1\n")), was: files{"a.go": "\uFEFFone\ntwo\n"},
			now: files{"a.go": "\uFEFF1\ntwo\n"},
		},
		{
			name: "byte order mark spelled out", answer: fenced("a.go", "go", block("\uFEFFone\n", "\uFEFF1\n")), was: files{"a.go": "\uFEFFone\ntwo\n"},
			now: files{"a.go": "\uFEFF1\ntwo\n"},
		},
		{name: "bytes that are no text", answer: fenced("a.go", "go", block("two\n", "2\n")), was: files{"a.go": "\xff\ntwo\n\x00"}, now: files{"a.go": "\xff\n2\n\x00"}},
		{name: "no final newline", answer: fenced("a.go", "go", block("two\n", "2\n3\n")), was: files{"a.go": "one\ntwo"}, now: files{"a.go": "one\n2\n3"}},
		{name: "no final newline, last line gone", answer: fenced("a.go", "go", block("one\ntwo\n", "one\n")), was: files{"a.go": "one\ntwo"}, now: files{"a.go": "one"}},
		{name: "all lines gone", answer: fenced("a.go", "go", block("one\n", "")), was: files{"a.go": "one\n"}, now: files{"a.go": ""}},
		{
			name: "conflict markers in the file, longer ones around", answer: "a.go\n<<<<<<<<< SEARCH\n=======\nx\n=========\n=======\ny\n>>>>>>>>> REPLACE\n",
			was: files{"a.go": "=======\nx\n"}, now: files{"a.go": "=======\ny\n"},
		},
		{
			name: "indented line like a marker", answer: "a.rst\n" + block("Title\n  =======\n", "Name\n  =======\n"),
			was: files{"a.rst": "Title\n  =======\n"}, now: files{"a.rst": "Name\n  =======\n"},
		},
		{
			name: "fences in the file", answer: fenced("README.md", "markdown", block("```sh\nmake\n```\n", "```sh\ngo test\n```\n")),
			was: files{"README.md": "# A\n```sh\nmake\n```\n"}, now: files{"README.md": "# A\n```sh\ngo test\n```\n"},
		},
		{
			name: "a file of a shell", answer: "```sh\nx.sh\n" + block("", "exit 0\n") + "```\n", now: files{"x.sh": "exit 0\n"},
		},
		{name: "text for a text", answer: fenced("foo.txt", "text", block("Two\n", "Too\n")), was: files{"foo.txt": "Two\n"}, now: files{"foo.txt": "Too\n"}},
		{
			name: "refused as a whole", answer: fenced("a.go", "go", bc+block("nowhere\n", "x\n")) + fenced("b.go", "go", block("three\n", "3\n")),
			was:  files{"a.go": lines, "b.go": lines},
			said: []string{"Nothing was changed: 1 of 3 blocks cannot be applied", "Block 2 (a.go, line 8 of the answer)", "Blocks that fit: 1, 3."},
		},
		{
			name: "what is there already", answer: fenced("a.go", "go", block("zwei\n", "three\n")), was: files{"a.go": lines},
			said: []string{"what it puts in their place is there already"},
		},
	})
}

func TestUdiff(t *testing.T) {
	const lines = "one\ntwo\nthree\nfour\n"
	diff := func(text string) string { return "```diff\n" + text + "```\n" }
	header := "--- a/a.go\n+++ b/a.go\n"
	now := files{"a.go": "one\n2\nthree\nfour\n"}
	testApply(t, editformat.Udiff, []applying{
		{name: "with dots for numbers", answer: diff(header + "@@ ... @@\n one\n-two\n+2\n three\n"), was: files{"a.go": lines}, now: now},
		{name: "with wrong numbers", answer: diff(header + "@@ -90,3 +70,3 @@ func x\n one\n-two\n+2\n three\n"), was: files{"a.go": lines}, now: now},
		{name: "without a line @@", answer: diff(header + "-two\n+2\n"), was: files{"a.go": lines}, now: now},
		{name: "without prefixes", answer: diff("--- a.go\n+++ a.go\n@@ @@\n-two\n+2\n"), was: files{"a.go": lines}, now: now},
		{name: "with times", answer: diff("--- a.go\t2020-01-01 00:00\n+++ a.go\t2020-01-01 00:00\n@@ @@\n-two\n+2\n"), was: files{"a.go": lines}, now: now},
		{name: "blanks in a path", answer: diff("--- a b/a.go\n+++ a b/a.go\n@@ @@\n-two\n+2\n"), was: files{"a b/a.go": lines}, now: files{"a b/a.go": now["a.go"]}},
		{name: "path above the fence", answer: "`a.go`\n" + diff("@@ @@\n-two\n+2\n"), was: files{"a.go": lines}, now: now},
		{name: "git's own lines", answer: diff("diff --git a/a.go b/a.go\nindex 123..456 100644\n" + header + "@@ -1 +1 @@\n-two\n+2\n"), was: files{"a.go": lines}, now: now},
		{
			name: "no path, one file that fits", answer: diff("@@ @@\n-two\n+2\n"), was: files{"a.go": lines, "b.go": "x\n"}, known: []string{"a.go", "b.go"},
			now: files{"a.go": now["a.go"], "b.go": "x\n"}, said: []string{"names no file"},
		},
		{name: "hunks in any order", answer: diff(header + "@@ @@\n-four\n+4\n@@ @@\n-two\n+2\n"), was: files{"a.go": lines}, now: files{"a.go": "one\n2\nthree\n4\n"}},
		{
			name: "two files in a fence", answer: diff(header + "@@ @@\n one\n+1b\n\n--- b.go\n+++ b.go\n@@ @@\n-x\n+y\n"), was: files{"a.go": lines, "b.go": "x\n"},
			now: files{"a.go": "one\n1b\ntwo\nthree\nfour\n", "b.go": "y\n"}, said: []string{"without the blank lines at its ends"},
		},
		{name: "two fences", answer: diff(header+"@@ @@\n-one\n+1\n") + "Then\n" + diff("@@ @@\n-two\n+2\n"), was: files{"a.go": lines}, now: files{"a.go": "1\n2\nthree\nfour\n"}, said: []string{"block 2 names no file and was applied to a.go, that of the block before"}},
		{
			name: "context without its blank", answer: diff(header + "@@ @@\none\n-two\n+2\nthree\n"), was: files{"a.go": lines}, now: now,
		},
		{
			name: "indented context without its blank", answer: diff(header + "@@ @@\n  one\n-  two\n+  2\n"), was: files{"a.go": "  one\n  two\n"},
			now: files{"a.go": "  one\n  2\n"}, said: []string{"the blank in front"},
		},
		{name: "empty lines are context", answer: diff(header + "@@ @@\n one\n\n-two\n+2\n"), was: files{"a.go": "one\n\ntwo\n"}, now: files{"a.go": "one\n\n2\n"}},
		{
			name: "other indentation", answer: diff(header + "@@ @@\n one\n-two\n+2\n"), was: files{"a.go": "\tone\n\ttwo\n"},
			now: files{"a.go": "\tone\n\t2\n"}, said: []string{"another indentation"},
		},
		{name: "new file", answer: diff("--- /dev/null\n+++ b/new.go\n@@ -0,0 +1,2 @@\n+x\n+y\n"), now: files{"new.go": "x\ny\n"}},
		{name: "new file without a final newline", answer: diff("--- /dev/null\n+++ new.go\n@@ @@\n+x\n\\ No newline at end of file\n"), now: files{"new.go": "x"}},
		{name: "new file that is there", answer: diff("--- /dev/null\n+++ b/a.go\n@@ @@\n+x\n"), was: files{"a.go": lines}, said: []string{"has text already"}},
		{name: "file removed", answer: diff("--- a/a.go\n+++ /dev/null\n@@ @@\n-one\n-two\n-three\n-four\n"), was: files{"a.go": lines}, now: files{}},
		{name: "file removed, but for a line", answer: diff("--- a/a.go\n+++ /dev/null\n@@ @@\n-one\n-two\n-three\n"), was: files{"a.go": lines}, said: []string{"does not take away all"}},
		{name: "file removed without its lines", answer: diff("--- a/a.go\n+++ /dev/null\n"), was: files{"a.go": lines}, said: []string{"has no hunk"}},
		{name: "removed and added line like headers", answer: diff("--- a.sql\n+++ a.sql\n@@ @@\n one\n--- x\n+++ y\n two\n"), was: files{"a.sql": "one\n-- x\ntwo\n"}, now: files{"a.sql": "one\n++ y\ntwo\n"}},
		{name: "renamed", answer: diff("--- a/a.go\n+++ b/b.go\n@@ @@\n-one\n+1\n"), was: files{"a.go": lines}, said: []string{"name no file, or two"}},
		{name: "renamed by git", answer: diff("diff --git a/a.go b/b.go\nrename from a.go\nrename to b.go\n"), was: files{"a.go": lines}, said: []string{"cannot be applied"}},
		{name: "in two places", answer: diff(header + "@@ @@\n-x\n+y\n"), was: files{"a.go": "x\nz\nx\n"}, said: []string{"more than one place: line 1, line 3"}},
		{name: "additions alone", answer: diff(header + "@@ @@\n+x\n"), was: files{"a.go": lines}, said: []string{"give the lines of the file that stand around it"}},
		{name: "CRLF and no final newline", answer: diff(header + "@@ @@\n one\n-two\n+2\n+3\n"), was: files{"a.go": "one\r\ntwo"}, now: files{"a.go": "one\r\n2\r\n3"}},
		{name: "final newline comes", answer: diff(header + "@@ @@\n-two\n\\ No newline at end of file\n+2\n"), was: files{"a.go": "one\ntwo"}, now: files{"a.go": "one\n2\n"}},
		{name: "final newline goes", answer: diff(header + "@@ @@\n-two\n+2\n\\ No newline at end of file\n"), was: files{"a.go": "one\ntwo\n"}, now: files{"a.go": "one\n2"}},
		{name: "final newline goes in the middle", answer: diff(header + "@@ @@\n-two\n+2\n\\ No newline at end of file\n"), was: files{"a.go": lines}, now: now},
		{name: "context that is not there", answer: diff(header + "@@ @@\n one\n zwei\n-two\n+2\n"), was: files{"a.go": lines}, said: []string{"its lines are not in the file", "-zwei"}},
		{name: "context alone", answer: diff("@@ @@\n one\n two\n"), was: files{"a.go": lines}, now: files{"a.go": lines}},
	})
}

func TestWhole(t *testing.T) {
	testApply(t, editformat.Whole, []applying{
		{name: "new", answer: fenced("a.go", "go", "x\n"), now: files{"a.go": "x\n"}},
		{name: "other text", answer: fenced("a.go", "go", "x\n\ny\n"), was: files{"a.go": "z\n"}, now: files{"a.go": "x\n\ny\n"}},
		{name: "decorated", answer: fenced("#### **`d/a.go`**:", "", "x\n"), now: files{"d/a.go": "x\n"}},
		{name: "CRLF", answer: fenced("a.go", "go", "one\n2\nthree\n"), was: files{"a.go": "one\r\ntwo\r\nthree\r\n"}, now: files{"a.go": "one\r\n2\r\nthree\r\n"}},
		{name: "mixed line endings", answer: fenced("a.go", "go", "new\na\nb\nX\nd\ne\n"), was: files{"a.go": "a\r\nb\nc\r\nd\ne\n"}, now: files{"a.go": "new\r\na\r\nb\nX\r\nd\ne\n"}},
		{name: "no final newline", answer: fenced("a.go", "go", "x\ny\n"), was: files{"a.go": "x\nz"}, now: files{"a.go": "x\ny"}},
		{name: "byte order mark", answer: fenced("a.go", "go", "y\n"), was: files{"a.go": "\uFEFFx\n"}, now: files{"a.go": "\uFEFFy\n"}},
		{name: "of UTF-16", answer: fenced("a.go", "go", "y\n"), was: files{"a.go": "\xff\xfex\x00\n\x00"}, said: []string{"the file is text in UTF-16LE, and edits are UTF-8"}},
		{name: "twice", answer: fenced("a.go", "go", "x\n") + fenced("a.go", "go", "y\n"), now: files{"a.go": "y\n"}},
		{name: "without an extension", answer: "It is now:\n\n" + fenced("file1", "", "x\n"), was: files{"file1": "y\n"}, now: files{"file1": "x\n"}},
		{name: "a word, and no file", answer: fenced("Usage", "go", "x\n"), said: []string{"there is no file Usage; a new one is named by its path, ./Usage"}},
		{name: "without a path", answer: "Like this:\n```go\nx\n```\n", now: files{}},
		{name: "below a word", answer: fenced("Explanation:", "go", "x\n"), now: files{}},
		{name: "below a sentence", answer: fenced("Change main.go so:", "go", "x\n"), now: files{}},
		{name: "below a command", answer: fenced("`python main.py`", "", "x\n"), now: files{}},
		{name: "script", answer: fenced("run.sh", "bash", "exit 0\n"), now: files{"run.sh": "exit 0\n"}},
		{name: "emptied", answer: fenced("a.go", "go", ""), was: files{"a.go": "x\n"}, said: []string{"the fence is empty"}},
		{name: "new and empty", answer: fenced("a.go", "go", ""), now: files{"a.go": ""}},
		{name: "lines left out", answer: fenced("a.go", "go", "x\n// ... existing code ...\n"), was: files{"a.go": "y\n"}, said: []string{"lines that are left out"}},
		{name: "line like that of the file", answer: fenced("a.md", "", "x\n... the rest is easy\n"), was: files{"a.md": "y\n... the rest is easy\n"}, now: files{"a.md": "x\n... the rest is easy\n"}},
		{name: "fence inside a longer one", answer: "a.md\n````\nx\n```sh\nmake\n```\n````\n", now: files{"a.md": "x\n```sh\nmake\n```\n"}},
		{name: "fence with a language inside", answer: fenced("a.md", "", "x\n```sh\nmake\n```\ny\n"), said: []string{"has fences of its own", "````"}},
		{name: "fence without one inside", answer: fenced("a.md", "", "x\n\n```\nmake\n```\n\ny\n"), said: []string{"has fences of its own"}},
		{name: "fence inside code", answer: fenced("a.py", "", "x\n```\nmake\n```\ny\n"), said: []string{"has fences of its own"}},
		{name: "fence in other words below", answer: fenced("a.py", "", "x\n") + "\nIt says:\n\n```\nhello\n```\n", now: files{"a.py": "x\n"}},
	})
}

func TestMismatchIsBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	answer := "a.go\n" + strings.Repeat(block(strings.Repeat(long+"\n", 20), "y\n"), 300)
	_, _, err := applied(t, editformat.Diff, answer, files{"a.go": strings.Repeat(long+"z\n", 100)})
	var mismatch *editformat.MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatalf("error %v", err)
	}
	if len(mismatch.Misfit) != 300 || len(err.Error()) > 32<<10 {
		t.Errorf("%d misfits in %d bytes", len(mismatch.Misfit), len(err.Error()))
	}
}

func TestPaths(t *testing.T) {
	edits := editformat.Parse(editformat.Diff, block("x\n", "y\n")+"b\n"+fenced("b.go", "", block("x\n", "y\n")+block("z\n", "y\n"))).Edits
	must.Same(t, []string{"b.go", "c.go"}, editformat.Paths(edits, "c.go", "b.go"), "paths")
}
