package outcome_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

func TestLongNamesInMessagesAreCut(t *testing.T) {
	long := strings.Repeat("d/", 6000)
	got := outcome.Stopf(outcome.InvalidInput, "file", "%s cannot be read: open %s: file name too long; give another.", long, long).Message
	cut := long[:200] + " … (12000 characters) … "
	if want := cut + long[len(long)-100:] + " cannot be read: open " + long[:200] + " … (12001 characters) … " + long[len(long)-99:] + ": file name too long; give another."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	spaced := `There is no skill "` + strings.Repeat("a ", 1000) + `\" end"; see agent-ci skills.`
	if got := outcome.Shortened(spaced); len(got) > 400 || !strings.HasPrefix(got, `There is no skill "a a`) || !strings.HasSuffix(got, ` end"; see agent-ci skills.`) {
		t.Errorf("a name with blanks: %s", got)
	}
	prose := strings.Repeat("Words that are not one name, \"quoted\" or not. ", 100)
	if got := outcome.Shortened(prose); got != prose {
		t.Errorf("prose was cut: %s", got)
	}
	if got := outcome.Shortened(strings.Repeat("\xff", 600)); len(got) > 1300 || !strings.Contains(got, "(600 characters)") {
		t.Errorf("bytes that are no text: %q", got)
	}
}
