package clip_test

import (
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                    string
		n                       int
		start, end, bytes, line string
	}{
		{"", 0, "", "", "", ""},
		{"word", 4, "word", "word", "word", "word"},
		{"word", 9, "word", "word", "word", "word"},
		{"word", 2, "wo", "rd", "wo…", "wo…"},
		{"word", 0, "", "", "…", "…"},
		{"word", -1, "", "", "…", "…"},
		{"aéé", 2, "a", "é", "a…", "a…"},
		{"€€", 4, "€", "€", "€…", "€…"},
		{"😀😀", 7, "😀", "😀", "😀…", "😀…"},
		{"one\n\ttwo ", 7, "one\n\ttw", "e\n\ttwo ", "one\n\ttw…", "one two"},
		{"\x80\x80a", 9, "\x80\x80a", "\x80\x80a", "\x80\x80a", "\x80\x80a"}, // is not cut
		{strings.Repeat("\x80", 9), 5, "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80…", "\x80\x80\x80\x80\x80…"},
	} {
		must.Same(t, c.start, clip.Start(c.text, c.n), c.text, c.n)
		must.Same(t, c.end, clip.End(c.text, c.n), c.text, c.n)
		must.Same(t, c.bytes, clip.Bytes(c.text, c.n), c.text, c.n)
		must.Same(t, c.line, clip.Line(c.text, c.n), c.text, c.n)
	}
}

func TestCutsBetweenLines(t *testing.T) {
	t.Parallel()
	const text = "one\ntwo two\nthree"
	for n, want := range map[int][2]string{-1: {}, 0: {}, 4: {"one\n", "hree"}, 5: {"one\n", "three"}, 7: {"one\ntwo", "o\nthree"}, 14: {"one\ntwo two\n", "two two\nthree"}, 16: {"one\ntwo two\n", "two two\nthree"}, 17: {text, text}} {
		must.Same(t, want, [2]string{clip.StartLines(text, n), clip.EndLines(text, n)}, n)
	}
}

func TestDurationsHaveNoUnitsOfZero(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 1500 * time.Millisecond: "1.5s", time.Minute: "1m", 10*time.Minute + 20*time.Second: "10m20s",
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", time.Hour + 5*time.Second: "1h0m5s",
	} {
		must.Same(t, want, clip.Duration(d), d)
	}
}

func TestMarksCutLists(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c"}
	must.Same(t, "a, b, c", clip.List(all, 3))
	must.Same(t, "a, b, …", clip.List(all, 2))
	must.Same(t, "a, b, c", clip.Some(all, 3))
	must.Same(t, "a and 2 more", clip.Some(all, 1))
}

func TestWritersKeepHeadOrTail(t *testing.T) {
	t.Parallel()
	head, tail := clip.Head{Limit: 9}, clip.Tail{Limit: 9}
	for _, text := range []string{"first\n", "second\n", "third\n"} {
		_, _ = io.WriteString(io.MultiWriter(&head, &tail), text)
	}
	if head.String() != "first\nsec" || head.Line() != "first" || head.Lines() != "first\n" || !head.Truncated() || tail.String() != "nd\nthird" {
		t.Errorf("got %q, %q, %q, %t, %q", head.String(), head.Line(), head.Lines(), head.Truncated(), tail.String())
	}
}

func FuzzTextIsCutBetweenCharacters(f *testing.F) {
	f.Add("a€😀", 3)
	f.Add("€\n€\na", 9)
	f.Fuzz(func(t *testing.T, text string, n int) {
		for _, cut := range [][2]string{{clip.Start(text, n), clip.End(text, n)}, {clip.StartLines(text, n), clip.EndLines(text, n)}} {
			start, end := cut[0], cut[1]
			if !strings.HasPrefix(text, start) || !strings.HasSuffix(text, end) || len(start) > max(n, 0) || len(end) > max(n, 0) {
				t.Errorf("%d bytes of %q: %q and %q", n, text, start, end)
			}
			if utf8.ValidString(text) && (!utf8.ValidString(start) || !utf8.ValidString(end)) {
				t.Errorf("%d bytes of %q cut a character: %q and %q", n, text, start, end)
			}
		}
	})
}
