package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

const program = `package main

import "fmt"

// Greeter greets.
type Greeter struct {
	name string
}

// Greet says hello.
func (g Greeter) Greet() {
	if g.name != "" {
		fmt.Println("hello")

		for i := range 3 {
			fmt.Println(i)
		}
	}
	fmt.Println("done")
}

func main() {
	Greeter{}.Greet()
}
`

func TestReadFileByIndentation(t *testing.T) {
	for _, test := range []struct {
		name        string
		arguments   map[string]any // besides the mode
		first, last int
	}{
		{"a level up, without what is beside it", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_levels": 1}}, 15, 17},
		{"two levels", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_levels": 2}}, 12, 18},
		{"a level up, with what is beside it", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_levels": 2, "include_siblings": true}}, 12, 19},
		{"all levels and the comment above", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_levels": 3}}, 10, 20},
		{"without the comment above", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_levels": 3, "include_header": false}}, 11, 20},
		{"no end to the levels", map[string]any{"indentation": map[string]any{"anchor_line": 16}}, 10, 20},
		{"offset is the anchor", map[string]any{"offset": 23}, 22, 24},
		{"the whole file", map[string]any{"indentation": map[string]any{"anchor_line": 16, "include_siblings": true}}, 1, 24},
		{"one line", map[string]any{"offset": 16, "limit": 1}, 16, 16},
		{"a number of lines", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_lines": 3}}, 15, 17},
		{"the smaller of both numbers", map[string]any{"limit": 2, "indentation": map[string]any{"anchor_line": 16, "max_lines": 3}}, 15, 16},
		{"the last line", map[string]any{"indentation": map[string]any{"anchor_line": 24}}, 22, 24},
		{"more levels than there are", map[string]any{"indentation": map[string]any{"anchor_line": 16, "max_levels": 1e300}}, 10, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			toolstest.Write(t, p.dir, map[string]string{"main.go": program})
			test.arguments["file_path"], test.arguments["mode"] = "main.go", "indentation"
			var want strings.Builder
			for i, line := range strings.Split(program, "\n")[test.first-1 : test.last] {
				fmt.Fprintf(&want, "L%d: %s\n", test.first+i, line)
			}
			must.Same(t, want.String(), toolstest.Output(t, p.read(t, test.arguments)))
		})
	}
}

func TestReadFileByIndentationOfOtherFiles(t *testing.T) {
	p := newPlace(t)
	toolstest.Write(t, p.dir, map[string]string{
		"empty": "", "flat": strings.Repeat("\tline of text\n", 10_000),
		"python": "class A:\n    @property\n    # text\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n",
	})
	for _, test := range []struct {
		file    string
		anchor  int
		options map[string]any
		begins  string
		ends    string
	}{
		{"empty", 1, map[string]any{}, "The file is empty.", "The file is empty."},
		{"python", 5, map[string]any{"max_levels": 1}, "L2: ", "L5:         return 1\n"},
		{"python", 8, map[string]any{"max_levels": 1}, "L7: ", "L8:         return 2\n"},
		{"flat", 5000, map[string]any{"max_lines": 101}, "L4950: ", "L5050: \tline of text\n"},
	} {
		test.options["anchor_line"] = test.anchor
		got := p.read(t, map[string]any{"file_path": test.file, "mode": "indentation", "indentation": test.options})
		if got.Failed || !strings.HasPrefix(got.Output, test.begins) || !strings.HasSuffix(got.Output, test.ends) {
			t.Errorf("%s from line %d: got %s", test.file, test.anchor, got.Output)
		}
	}
	got := p.read(t, map[string]any{"file_path": "flat", "mode": "indentation", "offset": 5000, "limit": 10_000})
	if got.Failed || strings.Contains(got.Output, "truncated") || !strings.Contains(got.Output, "L5000: ") || !strings.HasSuffix(got.Output, "(the block goes on, but the page is full; read other lines of it with mode slice)\n") {
		t.Errorf("a block larger than a page: %s", got.Output)
	}
}

func TestReadFileByIndentationRefuses(t *testing.T) {
	p := newPlace(t)
	toolstest.Write(t, p.dir, map[string]string{"file": "a\nb\n"})
	p.refuses(t, "read_file", []refused{
		{map[string]any{"file_path": "file", "mode": "indentation", "indentation": map[string]any{"anchor_line": 0}}, "anchor_line must be a 1-indexed line number"},
		{map[string]any{"file_path": "file", "mode": "indentation", "indentation": map[string]any{"anchor_line": 3}}, "anchor_line exceeds file length: the last line is 2"},
		{map[string]any{"file_path": "file", "mode": "indentation", "indentation": map[string]any{"max_lines": 0}}, "max_lines must be greater than zero"},
		{map[string]any{"file_path": "file", "mode": "words"}, `mode: expected one of "slice", "indentation", got "words"`},
		{map[string]any{"file_path": "file", "mode": "indentation", "indentation": map[string]any{"depth": 1}}, "depth"},
	})
}
