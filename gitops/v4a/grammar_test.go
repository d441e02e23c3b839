package v4a_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// lark is a grammar in the subset of Lark that [v4a.Grammar] uses: rules of
// alternatives of sequences, strings, regular expressions, groups, and the
// suffixes ?, * and +.
type lark map[string]production

// production is a node of a grammar.
type production interface {
	// ends returns where a match that starts at a byte may end.
	ends(g lark, text string, at int) map[int]bool
	// draw makes a text.
	draw(g lark, t *rapid.T) string
}

type (
	literal    string
	expression struct{ *regexp.Regexp }
	rule       string
	sequence   []production
	choice     []production
	repeated   struct {
		production
		min, max int
	}
)

func (p literal) ends(_ lark, text string, at int) map[int]bool {
	if strings.HasPrefix(text[at:], string(p)) {
		return map[int]bool{at + len(p): true}
	}
	return nil
}

// ends takes the longest match: every expression of the grammar goes up to the
// end of a line.
func (p expression) ends(_ lark, text string, at int) map[int]bool {
	if loc := p.FindStringIndex(text[at:]); loc != nil {
		return map[int]bool{at + loc[1]: true}
	}
	return nil
}

func (p rule) ends(g lark, text string, at int) map[int]bool { return g[string(p)].ends(g, text, at) }

func (p sequence) ends(g lark, text string, at int) map[int]bool {
	from := map[int]bool{at: true}
	for _, part := range p {
		to := map[int]bool{}
		for at := range from {
			for end := range part.ends(g, text, at) {
				to[end] = true
			}
		}
		from = to
	}
	return from
}

func (p choice) ends(g lark, text string, at int) map[int]bool {
	all := map[int]bool{}
	for _, part := range p {
		for end := range part.ends(g, text, at) {
			all[end] = true
		}
	}
	return all
}

func (p repeated) ends(g lark, text string, at int) map[int]bool {
	all := map[int]bool{}
	from := map[int]bool{at: true}
	for n := 0; len(from) > 0 && n <= p.max; n++ {
		to := map[int]bool{}
		for at := range from {
			if n >= p.min {
				all[at] = true
			}
			for end := range p.production.ends(g, text, at) {
				if end > at {
					to[end] = true
				}
			}
		}
		from = to
	}
	return all
}

func (p literal) draw(lark, *rapid.T) string { return string(p) }

func (p expression) draw(_ lark, t *rapid.T) string {
	pattern := strings.TrimSuffix(strings.TrimPrefix(p.String(), `\A(?:`), ")")
	if rapid.Bool().Draw(t, "tricky") {
		tricky := rapid.SampledFrom([]string{
			"*** End Patch", "*** Add File: x", "*** End of File", "@@", "@@ x", "+", "-", "a", "\u00a0x", "<<EOF", "*** Move to: y",
		}).Draw(t, "text")
		if p.MatchString(tricky) {
			return tricky
		}
	}
	return rapid.StringMatching(pattern).Draw(t, "text")
}

func (p rule) draw(g lark, t *rapid.T) string { return g[string(p)].draw(g, t) }

func (p sequence) draw(g lark, t *rapid.T) string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString(part.draw(g, t))
	}
	return b.String()
}

func (p choice) draw(g lark, t *rapid.T) string {
	return p[rapid.IntRange(0, len(p)-1).Draw(t, "alternative")].draw(g, t)
}

func (p repeated) draw(g lark, t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(p.min, min(p.max, p.min+3)).Draw(t, "times") {
		b.WriteString(p.production.draw(g, t))
	}
	return b.String()
}

func (g lark) accepts(text string) bool { return g["start"].ends(g, text, 0)[len(text)] }

const manyTimes = 1 << 20

var larkToken = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/|[A-Za-z_]+|[()|?*+])`)

// readLark reads a grammar, each rule on a line of its own.
func readLark(t testing.TB, text string) lark {
	t.Helper()
	g := lark{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case line == "%import common.LF":
			g["LF"] = literal("\n")
		default:
			name, body, ok := strings.Cut(line, ": ")
			if !ok {
				t.Fatalf("not a rule: %q", line)
			}
			r := &larkReader{t: t, rest: body}
			g[name] = r.choice()
			if r.rest != "" {
				t.Fatalf("left over in %q: %q", line, r.rest)
			}
		}
	}
	return g
}

type larkReader struct {
	t    testing.TB
	rest string
}

func (r *larkReader) peek() string {
	r.rest = strings.TrimLeft(r.rest, " ")
	return larkToken.FindString(r.rest)
}

func (r *larkReader) take() string {
	token := r.peek()
	r.rest = strings.TrimLeft(r.rest[len(token):], " ")
	return token
}

func (r *larkReader) choice() production {
	all := choice{r.sequence()}
	for r.peek() == "|" {
		r.take()
		all = append(all, r.sequence())
	}
	return all
}

func (r *larkReader) sequence() production {
	var all sequence
	for token := r.peek(); token != "" && token != "|" && token != ")"; token = r.peek() {
		all = append(all, r.suffixed())
	}
	return all
}

func (r *larkReader) suffixed() production {
	p := r.atom()
	switch r.peek() {
	case "?":
		r.take()
		return repeated{p, 0, 1}
	case "*":
		r.take()
		return repeated{p, 0, manyTimes}
	case "+":
		r.take()
		return repeated{p, 1, manyTimes}
	}
	return p
}

func (r *larkReader) atom() production {
	token := r.take()
	switch token[0] {
	case '(':
		p := r.choice()
		if r.take() != ")" {
			r.t.Fatal("a group is not closed")
		}
		return p
	case '"':
		return literal(token[1 : len(token)-1])
	case '/':
		// Lark's readers take \s as Unicode's white space.
		pattern := strings.ReplaceAll(token[1:len(token)-1], `\S`, `[^\s\v\x{85}\pZ]`)
		return expression{regexp.MustCompile(`\A(?:` + pattern + ")")}
	}
	return rule(token)
}

// A text of the grammar is a patch to the parser.
func TestGrammarIsParsed(t *testing.T) {
	g := readLark(t, v4a.Grammar)
	rapid.Check(t, func(t *rapid.T) {
		text := g["start"].draw(g, t)
		if _, err := v4a.Parse(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !g.accepts(text) {
			t.Fatalf("the recogniser refuses what the grammar made:\n%s", text)
		}
	})
}

// canonical are patches without any of the parser's tolerances.
var canonical = map[string]string{
	"all operations": "*** Begin Patch\n*** Add File: a\n+x\n+\n*** Delete File: b\n*** Update File: c\n@@\n a\n-b\n+c\n*** End Patch\n",
	"no last LF":     "*** Begin Patch\n*** Delete File: b\n*** End Patch",
	"move":           "*** Begin Patch\n*** Update File: c\n*** Move to: d e\n@@\n a\n*** End Patch\n",
	"first hunk":     "*** Begin Patch\n*** Update File: c\n-a\n+b\n@@\n-c\n*** End Patch\n",
	"end of file":    "*** Begin Patch\n*** Update File: c\n@@\n-a\n*** End of File\n@@ x\n+b\n*** End of File\n*** End Patch\n",
	"stacked":        "*** Begin Patch\n*** Update File: c\n@@ class A\n@@   def f\n-a\n*** End Patch\n",
	"looks like one": "*** Begin Patch\n*** Update File: c\n@@\n *** End Patch\n+*** Begin Patch\n-@@\n*** End Patch\n",
}

func TestParsedIsInGrammar(t *testing.T) {
	g := readLark(t, v4a.Grammar)
	for name, text := range canonical {
		t.Run(name, func(t *testing.T) {
			if _, err := v4a.Parse(text); err != nil {
				t.Error(err)
			}
			if !g.accepts(text) {
				t.Error("not in the grammar")
			}
		})
	}
}

// Whatever the parser reads, in however loose a form, says something that the
// grammar has a form for: written that way it is in the grammar, and read as the
// same. The grammar lacks only added files without lines and paths that start with
// a blank.
func TestParsedCanBeWrittenInGrammar(t *testing.T) {
	g := readLark(t, v4a.Grammar)
	lines := rapid.SampledFrom([]string{
		"*** Add File: a", "*** Delete File: b ", "*** Update File: c d", " *** Update File: e", "*** Move to: f",
		"@@", "@@ ", "@@ x", "@@  y ", " x", "-x", "+x", "", " ", "+", "-", "*** End of File", "  *** End of File",
		"*** End Patch", "*** Environment ID: 1", "+\t", "x", "-x\r", "*** Add File:   g",
	})
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		text := envelope(strings.Join(rapid.SliceOfN(lines, 1, 12).Draw(t, "lines"), "\n") + "\n")
		patch, err := v4a.Parse(text)
		if err != nil {
			if g.accepts(text) {
				t.Fatalf("in the grammar, but: %v\n%s", err, text)
			}
			return
		}
		read++
		canon, ok := inGrammar(patch)
		if !ok {
			return
		}
		again, err := v4a.Parse(canon)
		if err != nil || !g.accepts(canon) {
			t.Fatalf("not in the grammar, or refused (%v):\n%s\nfrom\n%s", err, canon, text)
		}
		if diff := cmp.Diff(patch.Sections, again.Sections, withoutLines); diff != "" {
			t.Fatalf("%s\n%s\n%s", diff, canon, text)
		}
	})
	if read == 0 {
		t.Error("nothing was read")
	}
}

var withoutLines = cmp.Options{
	cmpopts.IgnoreUnexported(v4a.Section{}, v4a.Hunk{}),
	cmpopts.IgnoreFields(v4a.Section{}, "Line"),
	cmpopts.IgnoreFields(v4a.Hunk{}, "Line"),
}

// inGrammar writes a patch without any tolerance, if that can be done.
func inGrammar(p *v4a.Patch) (text string, ok bool) {
	var b strings.Builder
	for _, s := range p.Sections {
		if s.Path[0] == ' ' || s.Op == v4a.Add && s.Content == "" {
			return "", false
		}
		switch s.Op {
		case v4a.Add:
			b.WriteString("*** Add File: " + s.Path + "\n")
			for line := range strings.Lines(s.Content) {
				b.WriteString("+" + line)
			}
		case v4a.Delete:
			b.WriteString("*** Delete File: " + s.Path + "\n")
		case v4a.Update:
			b.WriteString("*** Update File: " + s.Path + "\n")
			if s.MoveTo != "" {
				b.WriteString("*** Move to: " + s.MoveTo + "\n")
			}
			for _, h := range s.Hunks {
				writeHunk(&b, h)
			}
		}
	}
	return envelope(b.String()), true
}

func writeHunk(b *strings.Builder, h v4a.Hunk) {
	if len(h.Context) == 0 {
		b.WriteString("@@\n")
	}
	for _, c := range h.Context {
		b.WriteString("@@ " + c + "\n")
	}
	for _, l := range h.Lines {
		b.WriteString(string(l.Kind) + l.Text + "\n")
	}
	if h.EndOfFile {
		b.WriteString("*** End of File\n")
	}
}

// What the parser refuses for its form, the grammar does not let a model write.
func TestRefusedIsNotInGrammar(t *testing.T) {
	g := readLark(t, v4a.Grammar)
	for name, tt := range malformed {
		t.Run(name, func(t *testing.T) {
			if g.accepts(tt.text) {
				t.Error("in the grammar")
			}
		})
	}
}

// The example of the instructions is a patch, in the grammar too.
func TestInstructionsExample(t *testing.T) {
	_, example, ok := strings.Cut(v4a.Instructions(), "Example:\n\n")
	if !ok {
		t.Fatal("no example")
	}
	if _, err := v4a.Parse(example); err != nil {
		t.Error(err)
	}
	if !readLark(t, v4a.Grammar).accepts(example) {
		t.Error("the example is not in the grammar")
	}
}
