package merge_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/gitops/merge"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, base, ours, theirs, want string
		conflict                       bool
	}{
		{name: "one side", base: "a\nb\n", ours: "a\nB\n", theirs: "a\nb\n", want: "a\nB\n"},
		{name: "apart", base: "a\nb\nc\n", ours: "A\nb\nc\n", theirs: "a\nb\nC\n", want: "A\nb\nC\n"},
		{name: "both the same", base: "a\nb\nc\n", ours: "a\nX\nc\n", theirs: "a\nX\nc\n", want: "a\nX\nc\n"},
		{name: "same and apart", base: "a\nb\nc\n", ours: "X\nb\nc\n", theirs: "X\nb\nY\n", want: "X\nb\nY\n"},
		{name: "one line in two ways", base: "a\nb\nc\n", ours: "a\nX\nc\n", theirs: "a\nY\nc\n", conflict: true},
		{name: "neighbours", base: "a\nb\n", ours: "A\nb\n", theirs: "a\nB\n", conflict: true},
		{name: "both at the end", base: "a\n", ours: "a\nx\n", theirs: "a\ny\n", conflict: true},
		{name: "deleted and changed", base: "a\nb\nc\n", ours: "a\nc\n", theirs: "a\nB\nc\n", conflict: true},
		{name: "insertions apart", base: "a\nb\nc\n", ours: "x\na\nb\nc\n", theirs: "a\nb\nc\ny\n", want: "x\na\nb\nc\ny\n"},
		{name: "no last newline", base: "a\nb\nc", ours: "A\nb\nc", theirs: "a\nb\nc\n", want: "A\nb\nc\n"},
		{name: "carriage returns are kept", base: "a\r\nb\r\nc\r\n", ours: "A\r\nb\r\nc\r\n", theirs: "a\r\nb\r\nC\r\n", want: "A\r\nb\r\nC\r\n"},
		{name: "from nothing", base: "", ours: "a\n", theirs: "b\n", conflict: true},
		{name: "emptied", base: "a\nb\n", ours: "", theirs: "a\nb\n", want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := merge.Lines(c.base, c.ours, c.theirs)
			if ok == c.conflict || ok && got != c.want {
				t.Errorf("%q, ok %v; want %q, conflict %v", got, ok, c.want, c.conflict)
			}
		})
	}
}

// TestWhollyDifferent goes beyond what is compared line by line.
func TestWhollyDifferent(t *testing.T) {
	text := func(word string) string {
		var s strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&s, "%s %d\n", word, i)
		}
		return s.String()
	}
	if _, ok := merge.Lines(text("a"), text("b"), text("c")); ok {
		t.Error("three texts without a common line were merged")
	}
	if got, ok := merge.Lines("top\n\n"+text("a"), "top\n\n"+text("b"), "TOP\n\n"+text("a")); !ok || got != "TOP\n\n"+text("b") {
		t.Errorf("a change of the first line and one of all from the third conflict: %v", ok)
	}
}

// edited draws an edit of lines.
func edited(t *rapid.T, lines []string, label string) []string {
	lines = slices.Clone(lines)
	for n := range rapid.IntRange(0, 4).Draw(t, label+" edits") {
		at := rapid.IntRange(0, len(lines)).Draw(t, "at")
		switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
		case kind == 0 || at == len(lines):
			lines = slices.Insert(lines, at, fmt.Sprintf("%s %d\n", label, n))
		case kind == 1:
			lines = slices.Delete(lines, at, at+1)
		default:
			lines[at] = fmt.Sprintf("%s %d\n", label, n)
		}
	}
	return lines
}

// TestAsGit compares with git merge-file on texts whose lines are all
// different, where there is one way to match them.
func TestAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	clean := 0
	rapid.Check(t, func(t *rapid.T) {
		var base []string
		for i := range rapid.IntRange(0, 12).Draw(t, "lines") {
			base = append(base, fmt.Sprintf("line %d\n", i))
		}
		texts := [3]string{strings.Join(base, ""), strings.Join(edited(t, base, "ours"), ""), strings.Join(edited(t, base, "theirs"), "")}
		got, ok := merge.Lines(texts[0], texts[1], texts[2])
		if !ok {
			return // git may find more to agree on within a conflict
		}
		want, agreed := gitMerge(t, dir, texts)
		if !agreed || got != want {
			t.Fatalf("base %q, ours %q, theirs %q:\ngot  %q\nwant %q (clean: %v)", texts[0], texts[1], texts[2], got, want, agreed)
		}
		clean++
	})
	if clean == 0 {
		t.Error("nothing merged cleanly")
	}
}

func gitMerge(t *rapid.T, dir string, texts [3]string) (string, bool) {
	var paths []string
	for _, i := range []int{1, 0, 2} {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(texts[i]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	var out bytes.Buffer
	cmd := exec.Command("git", append([]string{"merge-file", "-p", "-q"}, paths...)...)
	cmd.Stdout = &out
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), err == nil
}

// TestProperties holds for texts with lines that come again and again.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "\n", "}\n"}), 0, 12).Draw(t, label)
			return strings.Join(lines, "") + rapid.SampledFrom([]string{"", "end"}).Draw(t, "end")
		}
		base, ours, theirs := draw("base"), draw("ours"), draw("theirs")
		for _, c := range [][4]string{{base, ours, base, ours}, {base, base, ours, ours}, {base, ours, ours, ours}} {
			if got, ok := merge.Lines(c[0], c[1], c[2]); !ok || got != c[3] {
				t.Fatalf("%q, ok %v; want %q", got, ok, c[3])
			}
		}
		a, okA := merge.Lines(base, ours, theirs)
		z, okZ := merge.Lines(base, theirs, ours)
		if okA != okZ || a != z {
			t.Fatalf("the sides changed places: %q %v, %q %v", a, okA, z, okZ)
		}
	})
}

var labels = merge.Labels{Ours: "a", Base: "o", Theirs: "b"}

func TestMarked(t *testing.T) {
	for name, c := range map[string]struct{ base, ours, theirs, want string }{
		"no conflict":     {"1\n2\n3\n", "1\n2\n4\n", "0\n2\n3\n", "0\n2\n4\n"},
		"one of two":      {"1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", "1\n2\n3\n4\nz\n", "x\n2\n3\n4\n<<<<<<< a (agent-ci)\ny\n||||||| o (agent-ci)\n5\n======= b (agent-ci)\nz\n>>>>>>> b (agent-ci)\n"},
		"two":             {"1\n2\n3\n", "x\n2\ny\n", "v\n2\nw\n", "<<<<<<< a (agent-ci)\nx\n||||||| o (agent-ci)\n1\n======= b (agent-ci)\nv\n>>>>>>> b (agent-ci)\n2\n<<<<<<< a (agent-ci)\ny\n||||||| o (agent-ci)\n3\n======= b (agent-ci)\nw\n>>>>>>> b (agent-ci)\n"},
		"no last newline": {"1", "2", "3", "<<<<<<< a (agent-ci)\n2\n||||||| o (agent-ci)\n1\n======= b (agent-ci)\n3\n>>>>>>> b (agent-ci)\n"},
		"no base":         {"", "1\n", "2\n", "<<<<<<< a (agent-ci)\n1\n||||||| o (agent-ci)\n======= b (agent-ci)\n2\n>>>>>>> b (agent-ci)\n"},
		"one deleted all": {"1\n2\n", "", "1\n3\n", "<<<<<<< a (agent-ci)\n||||||| o (agent-ci)\n1\n2\n======= b (agent-ci)\n1\n3\n>>>>>>> b (agent-ci)\n"},
	} {
		if got := merge.Marked(c.base, c.ours, c.theirs, labels); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestMarksAreFoundAgain(t *testing.T) {
	for _, mark := range labels.Marks() {
		if !merge.IsMark(mark) || merge.IsMark(" "+mark) || merge.IsMark(mark+" ") {
			t.Errorf("%q", mark)
		}
	}
	for _, line := range []string{"", "<<<<<<< HEAD", "=======", "x (agent-ci)", "<<<<<< a (agent-ci)"} {
		if merge.IsMark(line) {
			t.Errorf("%q is none", line)
		}
	}
}
