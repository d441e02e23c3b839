package v4a_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
)

var larkToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/|[A-Za-z_]+|[()|?*+]`)

// grammarExpression is the grammar as one regular expression: none of its rules contains itself.
var grammarExpression = func() string {
	rules := map[string]string{"LF": `/\n/`}
	for line := range strings.Lines(v4a.Grammar) {
		if name, body, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			rules[name] = body
		}
	}
	var translate func(body string) string
	translate = func(body string) string {
		var b strings.Builder
		for _, token := range larkToken.FindAllString(body, -1) {
			switch {
			case token[0] == '"':
				token = regexp.QuoteMeta(token[1 : len(token)-1])
			case token[0] == '/':
				// Lark's readers take \s as Unicode's white space.
				token = "(?:" + strings.ReplaceAll(token[1:len(token)-1], `\S`, `[^\s\v\x{85}\pZ]`) + ")"
			case !strings.Contains("()|?*+", token):
				token = "(?:" + translate(rules[token]) + ")"
			}
			b.WriteString(token)
		}
		return b.String()
	}
	return translate(rules["start"])
}()

var ofGrammar = regexp.MustCompile(`\A(?:` + grammarExpression + `)\z`)

// A text of the grammar is a patch to the parser.
func TestParsesGrammarTexts(t *testing.T) {
	texts := rapid.StringMatching(grammarExpression)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		must.Do(t, must.Err(v4a.Parse(text)), text)
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

func TestGrammarCoversCanonicalPatches(t *testing.T) {
	for name, text := range canonical {
		t.Run(name, func(t *testing.T) {
			must.Get(v4a.Parse(text))(t)
			must.Same(t, true, ofGrammar.MatchString(text), "not in the grammar")
		})
	}
}

// Whatever the parser reads, in however loose a form, says something that the
// grammar has a form for: written that way it is in the grammar, and read as the
// same. The grammar lacks only added files without lines and paths that start with
// a blank.
func TestGrammarExpressesParsedPatches(t *testing.T) {
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
			if ofGrammar.MatchString(text) {
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
		if err != nil || !ofGrammar.MatchString(canon) {
			t.Fatalf("not in the grammar, or refused (%v):\n%s\nfrom\n%s", err, canon, text)
		}
		must.Same(t, withoutLines(patch), withoutLines(again), canon, text)
	})
	if read == 0 {
		t.Error("nothing was read")
	}
}

// withoutLines returns what a patch says, but not in which of its lines.
func withoutLines(p v4a.Patch) v4a.Patch {
	p = slices.Clone(p)
	for i, s := range p {
		p[i] = v4a.Section{Op: s.Op, Path: s.Path, MoveTo: s.MoveTo, Content: s.Content, Hunks: slices.Clone(s.Hunks)}
		for k, h := range s.Hunks {
			p[i].Hunks[k] = v4a.Hunk{Context: h.Context, Lines: h.Lines, EndOfFile: h.EndOfFile}
		}
	}
	return p
}

// inGrammar writes a patch without any tolerance, if that can be done.
func inGrammar(p v4a.Patch) (text string, ok bool) {
	var b strings.Builder
	for _, s := range p {
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
func TestGrammarExcludesMalformedPatches(t *testing.T) {
	for name, tt := range malformed {
		t.Run(name, func(t *testing.T) {
			must.Same(t, false, ofGrammar.MatchString(tt.text), "in the grammar")
		})
	}
}

// The example of the instructions is a patch, in the grammar too.
func TestInstructionsExampleFollowsGrammar(t *testing.T) {
	_, example, ok := strings.Cut(v4a.Instructions(), "Example:\n\n")
	if !ok {
		t.Fatal("no example")
	}
	must.Get(v4a.Parse(example))(t)
	must.Same(t, true, ofGrammar.MatchString(example), "the example is not in the grammar")
}
