package outcome_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

func TestShortensLongNamesInMessages(t *testing.T) {
	long := strings.Repeat("d/", 6000)
	got := outcome.ShortenNames(long + " cannot be read: open " + long + ": file name too long; give another.")
	cut := long[:200] + " … (12000 characters) … "
	must.Same(t, cut+long[len(long)-100:]+" cannot be read: open "+long[:200]+" … (12001 characters) … "+long[len(long)-99:]+": file name too long; give another.", got)
	must.Same(t, got, outcome.ShortenNames(got), "what was cut is cut again")
	spaced := `There is no skill "` + strings.Repeat("a ", 1000) + `\" end"; see agent-ci skills.`
	if got := outcome.ShortenNames(spaced); len(got) > 400 || !strings.HasPrefix(got, `There is no skill "a a`) || !strings.HasSuffix(got, ` end"; see agent-ci skills.`) {
		t.Errorf("a name with blanks: %s", got)
	}
	prose := strings.Repeat("Words that are not one name, \"quoted\" or not. ", 100)
	must.Same(t, prose, outcome.ShortenNames(prose), "prose was cut")
	if got := outcome.ShortenNames(strings.Repeat("\xff", 600)); len(got) > 1300 || !strings.Contains(got, "(600 characters)") {
		t.Errorf("bytes that are no text: %q", got)
	}
}

// A secret that was cut would not be found: names are cut where secrets are out of the message.
func TestStopKeepsLongNames(t *testing.T) {
	secret := strings.Repeat("0123456789", 60)
	must.Same(t, "It said "+secret+".", outcome.Stopf(outcome.ModelFailed, "http", "It said %s.", secret).Message)
}
