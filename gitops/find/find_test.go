package find_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A place is told with the first way in which it fits; those of the first way that fits anywhere come
// before others.
func TestFind(t *testing.T) {
	all := []find.Tolerance{find.Exact, find.TrimmedTrailing, find.Indented, find.TrimmedBothEnds, find.FoldedUnicode, find.CollapsedSpaces}
	for name, test := range map[string]struct {
		text, block string
		from        find.ID
		ways        []find.Tolerance
		want        string
	}{
		"exact before loose":       {text: " a|a ", block: "a ", ways: all, want: `2 0; 1 2 " "`},
		"below a line":             {text: "a|b|a|b", block: "a|b", from: 2, ways: all, want: "3 0;"},
		"a few":                    {text: "a|a|a|a|a|a", block: "a", ways: all, want: "1 0, 2 0, 3 0, 4 0;"},
		"that lie across":          {text: "a|b|a|b|a", block: "a|b|a", ways: all, want: "1 0, 3 0;"},
		"one way after another":    {text: "“a”|a  b|\t\ta|\tb|a|  b|b |a b ", block: "a|b", ways: all, want: "3 3, 5 3;"},
		"further in, all the same": {text: "\ta|\t\tb|", block: "a|\tb|", ways: all, want: `1 2 "\t";`},
		"further in, not the same": {text: "\ta|\tb", block: "a|\tb", ways: all[:3], want: ";"},
		"further out":              {text: "a||\tb", block: "  a|  |  \tb", ways: all, want: "1 2;"},
		"kinds of quotes":          {text: "‘a’ – b", block: "'a' - b", ways: all, want: "1 4;"},
		"number of blanks":         {text: "a \t b", block: "a b", ways: all, want: "1 5;"},
		"not in this way":          {text: "a  b", block: "a b", ways: all[:5], want: ";"},
		"one more line between":    {text: "a|x|b|a|b|a|x|x|b|b|a", block: "a|b", ways: all, want: "4 0; 1 6"},
		"one more line at an end":  {text: "x|a|b", block: "a|b", ways: all, want: "2 0;"},
		"one more line alone":      {text: "a|x|b|", block: "a|b|", ways: all, want: "; 1 6"},
		"longer than the text":     {text: "a", block: "a|a", ways: all, want: ";"},
	} {
		t.Run(name, func(t *testing.T) {
			block := find.Block{Lines: strings.Split(test.block, "|")}
			if strings.HasPrefix(test.block, "  ") {
				block.Margin = "  "
			}
			fit, others := textOf(find.NewSeeker(block.Lines), strings.Split(test.text, "|")...).Find(block, test.from, test.ways...)
			must.Same(t, test.want, strings.TrimSpace(shown(fit)+"; "+shown(others)))
		})
	}
}

func textOf(seeker *find.Seeker, lines ...string) *find.Text {
	text := seeker.Text(len(lines))
	for _, line := range lines {
		text.Insert(0, line)
	}
	return text
}

func shown(places []find.Place) string {
	var all []string
	for _, p := range places {
		text := fmt.Sprintf("%d %d", p.FirstLine, p.Tolerance)
		if p.Offset != "" {
			text += fmt.Sprintf(" %q", p.Offset)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// Lines that came are found, and those that went are not.
func TestFindFollowsTextEdits(t *testing.T) {
	block := find.Block{Lines: []string{"a", "b"}}
	text := textOf(find.NewSeeker(block.Lines), "a", "b", "x", "a", "b")
	text.Insert(text.Delete(1), "c")
	text.Insert(3, "b")
	text.Insert(text.Prev(3), "a")
	fit, _ := text.Find(block, 0, find.Exact)
	must.Same(t, "4 0, 8 0", shown(fit))
	for range 100 {
		text.Delete(text.Insert(0, "a"))
	}
	if fit, _ := text.Find(block, 0, find.Exact); len(fit) != 2 || text.Len() != 7 {
		t.Errorf("%s of %d lines", shown(fit), text.Len())
	}
}

// Lines that all occur often, but never in a row, end the search.
func TestSeekerBoundsSteps(t *testing.T) {
	half := strings.Split(strings.Repeat("a|", 20_000)+"b", "|")
	block := find.Block{Lines: append(append([]string{}, half...), half...)}
	seeker := find.NewSeeker(block.Lines)
	lines := strings.Split(strings.Repeat(strings.Repeat("a|", 19_999)+"b|", 20)+strings.Repeat("b|a|", 20_000), "|")
	text := textOf(seeker, lines...)
	for range 10_000 {
		if text.Find(block, 0, find.Exact); seeker.OutOfSteps() {
			return
		}
	}
	t.Error("it never gave up")
}
