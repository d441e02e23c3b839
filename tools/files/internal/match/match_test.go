package match

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-ci/agent-ci/gitops/charset"
	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
)

func TestMatchLines(t *testing.T) {
	for _, test := range []struct {
		name, expression, text string
		want                   bool
	}{
		{"literal", "needle", "hay\nneedle\n", true},
		{"literal, not there", "needle", "hay\nneedl\n", false},
		{"literal with special characters", `f\(x\)`, "a f(x)\n", true},
		{"case counts", "Needle", "needle\n", false},
		{"any case", "(?i)NeeDle", "x nEEDLE\n", true},
		{"any case, not there", "(?i)needle", "nEEDL E\n", false},
		{"any case, no letter", "(?i)a+12", "A12\n", true},
		{"any case with a long s", "(?i)master", "ma\u017fter\n", true},
		{"any case with a Kelvin sign", "(?i)token", "TO\u212aEN\n", true},
		{"only letters that have others", "(?i)sks", "\u017f\u212aS\n", true},
		{"any case outside of ASCII", "(?i)größe", "GRÖSSE GRÖßE\n", true},
		{"any case outside of ASCII, not there", "(?i)größe", "grube GRÖSSE\n", false},
		{"any case in a part", "ab(?i:cd)", "abCD\n", true},
		{"start of a line", "^b", "a\nb\n", true},
		{"not the start of a line", "^b", "ab\n", false},
		{"end of a line", "a$", "a\nb\n", true},
		{"end of a CRLF line", "a$", "a\r\nb\r\n", true},
		{"empty line", "^$", "a\n\nb\n", true},
		{"no empty line after the last newline", "^$", "a\nb\n", false},
		{"text begins with every line", `\Ab\z`, "a\nb\n", true},
		{"nothing matches a newline", `a\sb`, "a\nb\n", false},
		{"nor does a negated class", `a[^x]b`, "a\nb\n", false},
		{"nor any character", `(?s)a.b`, "a\nb\n", false},
		{"alternatives", "foo|bar", "a\nbar\n", true},
		{"alternatives with one that could be anything", "foo|x*y", "a\nxxy\n", true},
		{"a literal in front", `func \w+\(`, "func main()\n", true},
		{"a literal on a line that doesn't match", `func \w+\(`, "func (x)\nfunc y(\n", true},
		{"a literal at the end", `[a-z]{5,}Error`, "someError\nbigError\n", false},
		{"a replacement character matches invalid bytes", "a\uFFFDb", "a\xffb\n", true},
		{"everything", "", "a\n", true},
		{"nothing in an empty text", "", "", false},
		{"no final newline", "b$", "a\nb", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := must.Get(Compile(test.expression))(t)
			must.Same(t, test.want, p.MatchLines([]byte(test.text)), test.expression, test.text)
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, expression := range []string{"(", "a**", `\1`, "(?=x)", "[z-a]", "a{2000}"} {
		must.Fail(t, "", must.Err(Compile(expression)), expression, "no error")
	}
	for _, expression := range []string{`a\nb`, "a\nb", "x|(y\n)"} {
		must.Is(t, ErrNewline, must.Err(Compile(expression)), expression)
	}
}

// TestMatchesLinesLikeRegexp compares with package regexp asked for each line.
func TestMatchesLinesLikeRegexp(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"a", "b", "ab", "s", "k", "sk", "task", "(?i:a)", "(?i:ask)", "(?i:sKb)", "[ab]", "[^a]", ".", "a|b", "(?:ab|ka|s)", "(ab)", "^", "$",
		`\b`, `\s`, "a{2,3}", "(?:ka)+", "x?", "(?:b|sk)*", "ß", "(?i:ß)", `\r`,
	})
	texts := rapid.SampledFrom([]string{"a", "b", "A", "s", "S", "k", "K", "x", "ß", "ẞ", "\u017f", "\u212a", " ", "\r", "\n", "\n", "\r\n", "\xff", "task", "ab"})
	rapid.Check(t, func(t *rapid.T) {
		expression := strings.Join(rapid.SliceOfN(words, 1, 6).Draw(t, "expression"), "")
		text := strings.Join(rapid.SliceOfN(texts, 0, 30).Draw(t, "text"), "")
		p, err := Compile(expression)
		if err != nil {
			t.Skip(err)
		}
		oracle := regexp.MustCompile(expression)
		want := false
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			want = want || oracle.MatchString(line) || strings.HasSuffix(line, "\r") && strings.HasSuffix(expression, "$") && oracle.MatchString(strings.TrimSuffix(line, "\r"))
		}
		got := p.MatchLines([]byte(text))
		if got != want && !(got && strings.Contains(expression, "$") && strings.Contains(text, "\r")) {
			t.Fatalf("%q in %q: got %v", expression, text, got)
		}
		var r Reader
		if read, err := r.Match(context.Background(), p, strings.NewReader(text)); err != nil || read != got {
			t.Fatalf("the reader says %v, %v", read, err)
		}
	})
}

func TestReader(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	for _, test := range []struct {
		name, text string
		want       bool
	}{
		{"empty", "", false},
		{"short", "needle", true},
		{"fills the buffer", strings.Repeat("x", window-6) + "needle", true},
		{"fills a window", strings.Repeat(line, window/100) + "needle", true},
		{"between two windows", strings.Repeat(line, window/100) + strings.Repeat("x", window%100-3) + "needle\n", true},
		{"in the third window", strings.Repeat(line, 2*window/100+50) + "needle\n", true},
		{"nowhere", strings.Repeat(line, 3*window/100), false},
		{"in a line longer than a window", strings.Repeat("x", 2*window) + " needle", true},
		{"binary", "a\x00needle\n", false},
		{"a NUL where git no longer looks", strings.Repeat("x", charset.Head) + "\x00needle\n", true},
		{"a NUL where git still looks", strings.Repeat("x", charset.Head-1) + "\x00needle\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := must.Get(Compile("needle$"))(t)
			var r Reader
			for _, file := range []io.Reader{strings.NewReader(test.text), iotest.HalfReader(strings.NewReader(test.text))} {
				must.Same(t, test.want, must.Get(r.Match(t.Context(), p, file))(t))
			}
			if len(r.buffer) > window {
				t.Errorf("the buffer has %d bytes", len(r.buffer))
			}
		})
	}
}

func TestReaderStops(t *testing.T) {
	p := must.Get(Compile("needle"))(t)
	var r Reader
	broken := errors.New("broken")
	must.Is(t, broken, must.Err(r.Match(t.Context(), p, iotest.ErrReader(broken))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, must.Err(r.Match(ctx, p, zeroes{})))
}

// zeroes is a file without an end.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("0"), len(p))), nil }

func FuzzCompile(f *testing.F) {
	f.Add("(?i)todo|x{2,3}$", "a TODO\r\n")
	f.Fuzz(func(t *testing.T, expression, text string) {
		p, err := Compile(expression)
		if err != nil {
			return
		}
		p.MatchLines([]byte(text))
	})
}

func TestLowerCaseChangesASCIILettersAlone(t *testing.T) {
	for c := range 256 {
		want := byte(c)
		if 'A' <= c && c <= 'Z' {
			want = byte(c) + 'a' - 'A'
		}
		for _, n := range []int{1, 3, 8} {
			text := bytes.Repeat([]byte{byte(c), 'Q', 0xff}, n)
			must.Same(t, bytes.Repeat([]byte{want, 'q', 0xff}, n), lowerCase(true).lower(text), c)
			must.Same(t, bytes.Repeat([]byte{byte(c), 'Q', 0xff}, n), text, "the text changed")
		}
	}
}
