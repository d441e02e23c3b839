package v4a_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Many sections for one file in one patch make of it what they make one patch
// after the other, or are refused as the first one of those is.
func TestSectionsTogether(t *testing.T) {
	applied, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		distinct := rapid.SampledFrom([]int{5, 50, 500}).Draw(t, "distinct lines")
		line := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(1, distinct).Draw(t, "line")) })
		ending := rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r"}).Draw(t, "ending")
		before := strings.Join(rapid.SliceOfN(line, 30, 60).Draw(t, "lines"), ending) + ending
		want, all, fits := before, "", true
		for range rapid.IntRange(6, 14).Draw(t, "sections") {
			section := drawUpdate(t, want, ending, line)
			all += section
			if want, fits = updatedBy(t, want, section); !fits {
				break
			}
		}
		got, ok := updatedBy(t, before, all)
		if ok != fits || ok && got != want {
			t.Fatalf("%q\n%s\nis %q (%v), want %q (%v)", before, all, got, ok, want, fits)
		}
		if ok {
			applied++
		} else {
			refused++
		}
	})
	if applied == 0 || refused == 0 {
		t.Errorf("%d applied, %d refused", applied, refused)
	}
}

// drawUpdate changes a few lines somewhere in a text.
func drawUpdate(t *rapid.T, text, ending string, line *rapid.Generator[string]) string {
	lines := strings.Split(strings.TrimSuffix(text, ending), ending)
	at := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
	var b strings.Builder
	b.WriteString("*** Update File: f\n@@")
	if above := rapid.IntRange(-5, 3).Draw(t, "above"); above > 0 && at >= above {
		b.WriteString(" " + lines[at-above])
	}
	b.WriteString("\n")
	for _, l := range lines[at:min(len(lines), at+rapid.IntRange(1, 4).Draw(t, "length"))] {
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0, 1:
			b.WriteString("-" + l + "\n")
		case 2, 3:
			b.WriteString(" " + l + "\n+" + line.Draw(t, "added") + "\n")
		case 4:
			b.WriteString(" " + l + rapid.SampledFrom([]string{"", "", "", " ", "x"}).Draw(t, "loose") + "\n")
		default:
			b.WriteString(" " + l + "\n")
		}
	}
	return b.String()
}

// updatedBy returns what sections make of a text, unless they are refused.
func updatedBy(t *rapid.T, before, sections string) (string, bool) {
	after, err := text(before, parsed(t, sections))
	return after, err == nil
}
