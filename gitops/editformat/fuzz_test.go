package editformat_test

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/policy/must"
)

// step is what becomes of a line: it stays (' '), goes ('-') or comes ('+').
type step struct {
	kind byte
	text string
}

// script reads an edit off bytes: what becomes of each line of a text, and what
// comes in between.
func script(lines []string, decisions []byte, added []string) []step {
	var steps []step
	next := func() byte {
		if len(decisions) == 0 {
			return 0
		}
		d := decisions[0]
		decisions = decisions[1:]
		return d
	}
	come := func() {
		if d := next(); d%4 == 3 {
			steps = append(steps, step{'+', added[int(d/4)%len(added)]})
		}
	}
	for _, line := range lines {
		come()
		kind := byte(' ')
		if next()%4 == 3 {
			kind = '-'
		}
		steps = append(steps, step{kind, line})
	}
	come()
	return steps
}

func side(steps []step, not byte) []string {
	var lines []string
	for _, s := range steps {
		if s.kind != not {
			lines = append(lines, s.text)
		}
	}
	return lines
}

// hunks cuts an edit into those of its parts that change something, with lines
// around them.
func hunks(steps []step, around int) [][]step {
	var all [][]step
	end := 0
	for i := 0; i < len(steps); i++ {
		if steps[i].kind == ' ' {
			continue
		}
		last := i
		for k := i; k < len(steps) && k <= last+2*around+1; k++ {
			if steps[k].kind != ' ' {
				last = k
			}
		}
		from := max(end, i-around)
		end = min(len(steps), last+around+1)
		all = append(all, steps[from:end])
		i = end - 1
	}
	return all
}

// areClear reports whether each hunk has one place in what those before it leave.
func areClear(lines []string, all [][]step) bool {
	for _, h := range all {
		old := side(h, '+')
		if strings.TrimSpace(strings.Join(old, "")) == "" {
			return false
		}
		at := -1
		for i := 0; i+len(old) <= len(lines); i++ {
			if slices.Equal(lines[i:i+len(old)], old) {
				if at >= 0 {
					return false
				}
				at = i
			}
		}
		if at < 0 {
			return false
		}
		lines = slices.Concat(lines[:at], side(h, '-'), lines[at+len(old):])
	}
	return true
}

// written is an edit in a format.
func written(f editformat.Format, steps []step, all [][]step) string {
	var b strings.Builder
	lines := func(texts []string) {
		for _, text := range texts {
			b.WriteString(text + "\n")
		}
	}
	fence := strings.Repeat("`", 3+longestFence(steps))
	switch f {
	case editformat.Diff:
		for _, h := range all {
			b.WriteString("f.x\n<<<<<<<<< SEARCH\n")
			lines(side(h, '+'))
			b.WriteString("=========\n")
			lines(side(h, '-'))
			b.WriteString(">>>>>>>>> REPLACE\n")
		}
	case editformat.Udiff:
		b.WriteString(fence + "diff\n--- a/f.x\n+++ b/f.x\n")
		for _, h := range all {
			b.WriteString("@@ ... @@\n")
			for _, s := range h {
				b.WriteString(string(rune(s.kind)) + s.text + "\n")
			}
		}
		b.WriteString(fence + "\n")
	case editformat.Whole:
		b.WriteString("f.x\n" + fence + "x\n")
		lines(side(steps, '-'))
		b.WriteString(fence + "\n")
	}
	return b.String()
}

var fenceRun = regexp.MustCompile("`+")

func longestFence(steps []step) int {
	longest := 0
	for _, s := range steps {
		for _, run := range fenceRun.FindAllString(s.text, -1) {
			longest = max(longest, len(run))
		}
	}
	return longest
}

// inTheWay are lines that cannot be written in a format, or stand for others there.
var inTheWay = map[editformat.Format]*regexp.Regexp{
	editformat.Diff:  regexp.MustCompile(`^[\s\v]*(<{5,9} SEARCH>?|={5,9}|>{5,9} REPLACE)[\s\v]*$`),
	editformat.Udiff: regexp.MustCompile(`^(-- |\+\+ )`),
	editformat.Whole: regexp.MustCompile(`\.\.\.|…`),
}

// FuzzEdits writes a random edit of a random file in each format: applied, it gives
// the edit; cut off anywhere, it gives no other.
func FuzzEdits(f *testing.F) {
	f.Add("a\nb\nc\n", []byte{0, 0, 3, 3, 0, 0}, "x\ny", byte(0), uint16(9))
	f.Add("a\r\n\r\n  b\r\nc", []byte{7, 3, 0, 3, 7, 0, 3}, "```\n...", byte(1), uint16(40))
	f.Add("\ufeffa\nb\na\nb\n", []byte{0, 0, 0, 0, 0, 3, 3}, " a\n=======", byte(2), uint16(70))
	f.Add("", []byte{3}, "# x", byte(3), uint16(20))
	f.Add("--- a\n+++ b\n@@\n", []byte{0, 3, 3, 3}, "+++ c\n--- d", byte(3), uint16(20))
	f.Fuzz(func(t *testing.T, text string, decisions []byte, comes string, shape byte, cut uint16) {
		if len(text) > 1<<12 || len(comes) > 1<<10 {
			t.Skip("enough is known of smaller ones")
		}
		bare := strings.TrimPrefix(text, "\ufeff")
		ended := bare == "" || strings.HasSuffix(bare, "\n")
		crlf := strings.Count(bare, "\r\n")
		ending := "\n"
		if crlf > 0 {
			ending = "\r\n"
		}
		if crlf > 0 && crlf != strings.Count(bare, "\n") || crlf != strings.Count(bare, "\r") || strings.Contains(comes, "\r") || strings.Contains(bare+comes, "\ufeff") {
			t.Skip("the tables have these")
		}
		var lines []string
		if bare != "" {
			lines = strings.Split(strings.TrimSuffix(strings.ReplaceAll(bare, "\r\n", "\n"), "\n"), "\n")
		}
		steps := script(lines, decisions, strings.Split(comes, "\n"))
		want := strings.TrimSuffix(text, bare)
		if after := side(steps, '-'); len(after) > 0 {
			want += strings.Join(after, ending)
			if ended {
				want += ending
			}
		}
		for _, format := range formats {
			checkWritten(t, format, text, want, lines, steps, shape, int(cut))
		}
	})
}

func checkWritten(t *testing.T, f editformat.Format, text, want string, lines []string, steps []step, shape byte, cut int) {
	if slices.ContainsFunc(steps, func(s step) bool { return inTheWay[f].MatchString(s.text) }) {
		return
	}
	all := hunks(steps, int(shape/2%4))
	if len(all) == 0 {
		return // it changes nothing
	}
	if shape%2 == 1 {
		slices.Reverse(all)
	}
	if f != editformat.Whole && !areClear(lines, all) {
		all = [][]step{steps}
		if len(lines) > 0 && !areClear(lines, all) {
			return // nothing but blank lines
		}
	}
	answer := written(f, steps, all)
	if f == editformat.Whole && len(lines) > 0 && len(side(steps, '-')) == 0 {
		return // which a fence without lines does not do
	}
	now, _, err := applied(t, f, answer, files{"f.x": text})
	must.Do(t, err, f, answer)
	if now["f.x"] != want {
		t.Fatalf("%s: %q\nwant %q\nof %q by\n%s", f, now["f.x"], want, text, answer)
	}
	edits := editformat.Parse(f, answer).Edits
	cut %= len(answer) + 1
	part := editformat.Parse(f, answer[:cut]).Edits
	if len(part) > len(edits) || !reflect.DeepEqual(part, edits[:len(part)]) && len(part) > 0 {
		t.Fatalf("%s: %v\nby the first %d bytes of\n%s", f, part, cut, answer)
	}
	if f != editformat.Diff && len(part) > 0 && cut < len(answer)-1 {
		t.Fatalf("%s: %d edits of a fence that is open:\n%s", f, len(part), answer[:cut])
	}
}

var (
	begin  = regexp.MustCompile(`(?m)^[\s\v]*<{5,9} SEARCH>?[\s\v]*$`)
	divide = regexp.MustCompile(`(?m)^[\s\v]*={5,9}[\s\v]*$`)
	finish = regexp.MustCompile(`(?m)^[\s\v]*>{5,9} REPLACE[\s\v]*$`)
	fences = regexp.MustCompile("(?m)^ {0,3}(```|~~~)")
)

// isWhole reports whether a text has all that a block consists of, in order.
func isWhole(f editformat.Format, text string) bool {
	parts := []*regexp.Regexp{fences, fences}
	if f == editformat.Diff {
		parts = []*regexp.Regexp{begin, divide, finish}
	}
	for _, part := range parts {
		at := part.FindStringIndex(text)
		if at == nil {
			return false
		}
		text = text[at[1]:]
	}
	return true
}

// FuzzText reads arbitrary text: it edits nothing without a whole block, asks for
// nothing without a fence that is closed, and what it says is in bounds.
func FuzzText(f *testing.F) {
	f.Add("a\n```go\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n", "a\n")
	f.Add("```diff\n--- a/a\n+++ b/a\n@@ @@\n a\n-b\n+c\n\\ No newline at end of file\n```", "a\nb")
	f.Add("a.b\n```\nx\n```\n```read\na\n```\n```bash\nls\n```\n```plan\n- [x] a\n", "\ufeff\r\n")
	f.Add("a.b\n<<<<<<< SEARCH\na\n...\nb\n=======\nc\n...\nd\n>>>>>>> REPLACE", "a\n\nb\n")
	f.Fuzz(func(t *testing.T, answer, text string) {
		if len(answer) > 1<<14 || len(text) > 1<<14 {
			t.Skip("enough is known of smaller ones")
		}
		for _, format := range formats {
			parsed := editformat.Parse(format, answer)
			if len(parsed.Edits) > 0 && !isWhole(format, answer) {
				t.Errorf("%s: edits without a whole block: %q", format, answer)
			}
			if len(parsed.Reads)+len(parsed.Commands)+len(parsed.Plan) > 0 && !isWhole(editformat.Whole, answer) {
				t.Errorf("%s: it asks without a fence: %q", format, answer)
			}
			was := map[string]*string{}
			for _, path := range editformat.Paths(parsed.Edits, "a") {
				was[path] = &text
			}
			now, notes, err := editformat.Apply(format, parsed.Edits, was)
			var mismatch *editformat.MismatchError
			if err != nil && (!errors.As(err, &mismatch) || now != nil || len(err.Error()) > 64<<10) {
				t.Errorf("%s: error %v", format, err)
			}
			if len(parsed.Edits) == 0 && len(now) > 0 || len(strings.Join(notes, "")) > 64<<10 {
				t.Errorf("%s: %d texts, %d notes", format, len(now), len(notes))
			}
		}
	})
}

// TestBoundsErrorsOnHostileTexts reads and applies large texts that a search which starts over
// and over would not come to an end with.
func TestBoundsErrorsOnHostileTexts(t *testing.T) {
	const size = 1 << 17
	filled := func(part string) string { return strings.Repeat(part, size/len(part)) }
	common := strings.Repeat("a\nb\n", 200)
	for name, test := range map[string]struct{ answer, text string }{
		"fences":                 {filled("```\n"), "a\n"},
		"open fences":            {filled("```go\n"), "a\n"},
		"fences of all lengths":  {filled("```a\n~~~~b\n`````c\n"), "a\n"},
		"paths and fences":       {filled("a.go\n```\n"), "a\n"},
		"begins":                 {filled("<<<<<<< SEARCH\n"), "a\n"},
		"begins of all lengths":  {filled("<<<<< SEARCH\n<<<<<< SEARCH\n<<<<<<< SEARCH\n"), "a\n"},
		"dividers":               {"<<<<<<< SEARCH\n" + filled("=======\n"), "a\n"},
		"ends":                   {filled("<<<<<<< SEARCH\n>>>>>>>> REPLACE\n"), "a\n"},
		"blocks that don't fit":  {"f.x\n" + filled(block("nowhere\n", "x\n")), filled("somewhere\n")},
		"blocks that fit often":  {"f.x\n" + filled(block("a\nb\n", "x\n")), filled("a\nb\n")},
		"near matches":           {"f.x\n" + filled(block(common+"c\n", "x\n")), filled(common + "d\n")},
		"common lines":           {"f.x\n" + filled(block("a\na\nb\nb\n", "x\n")), filled("a\na\nb\n") + filled("a\nb\nb\n")},
		"one line over and over": {"f.x\n" + filled(block("b\n", "b\n")), "b\n" + filled("a\n")},
		"lines left out":         {"f.x\n<<<<<<< SEARCH\n" + filled("a\n...\n") + "=======\n" + filled("b\n...\n") + ">>>>>>> REPLACE\n", filled("a\n")},
		"long lines":             {"f.x\n" + block(strings.Repeat("a ", size/2)+"\n", "x\n"), strings.Repeat("a ", size/2) + "b\n"},
		"hunks":                  {"```diff\n--- f.x\n+++ f.x\n" + filled("@@ @@\n-b\n+b\n") + "```\n", "b\n" + filled("a\n")},
		"headers":                {"```diff\n" + filled("--- a\n+++ b\n@@\n") + "```\n", "a\n"},
		"blank hunk":             {"```diff\n--- a/f.x\n+++ b/f.x\n" + filled("\n") + "-a\n```\n", "a\n"},
		"whole files":            {filled("f.x\n```\na\n```\n"), filled("b\n")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range formats {
				edits := editformat.Parse(format, test.answer).Edits
				if _, _, err := editformat.Apply(format, edits, map[string]*string{"f.x": &test.text}); err != nil && len(err.Error()) > 64<<10 {
					t.Errorf("%s: an error of %d bytes", format, len(err.Error()))
				}
			}
		})
	}
}
