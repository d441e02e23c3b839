package show

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Planned is a plan with what it comes to.
type Planned struct {
	Plan     *campaign.Plan    `json:"plan"`
	Forecast campaign.Forecast `json:"forecast"`
	Applies  map[string]string `json:"applies,omitempty"` // yes, no, or what went wrong, by target
	Budget   job.Spending      `json:"-"`
}

// Plan writes a plan for a terminal.
func Plan(w io.Writer, s Planned) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, target := range s.Plan.Targets {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", cell(name(campaign.Row{Target: target})), cell(target.Base), target.SHA[:min(len(target.SHA), 12)], cell(s.note(target)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range s.lines() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// cell is a stranger's text in a table.
func cell(text string) string { return progress.Printable(markdown.Cut(text, 120)) }

func (s Planned) note(t campaign.Target) string {
	applies := s.Applies[t.Key]
	switch {
	case t.Lacks != "":
		return "cannot run: " + t.Lacks
	case applies == "no":
		return "does not apply"
	case applies != "" && applies != "yes":
		return "whether it applies is not known: " + applies
	case t.Existing != "":
		return "has a pull request: " + t.Existing
	case len(t.After) > 0:
		return fmt.Sprintf("waits for %d others", len(t.After))
	}
	return ""
}

func (s Planned) lines() []string {
	f, claim := s.Forecast, s.Plan.Claim
	lines := []string{fmt.Sprintf("%d targets: %d to run in %d waves, %d done, %d with a pull request already, %d that cannot run", f.Targets, f.Runs, f.Waves, f.Done, f.Existing, f.Lacking)}
	if s.Plan.Unpriced != "" {
		lines = append(lines, fmt.Sprintf("A run may use %d tokens, all of them %d. What it costs is not known: %s.", claim.Tokens, f.Most.Tokens, s.Plan.Unpriced))
	} else {
		lines = append(lines, fmt.Sprintf("A run may cost %.2f dollars and use %d tokens, all of them %s and %d tokens.", claim.USD, claim.Tokens, dollars(f.Most.USD, s.Budget.USD), f.Most.Tokens))
	}
	e := f.Estimate
	if e == nil {
		return append(lines, "What they will cost cannot be estimated: no run of the campaign is in the ledger.")
	}
	by := "with this job"
	if !e.Template {
		by = "with another job of the campaign"
	}
	return append(lines, fmt.Sprintf("By %d runs %s, which cost %.2f dollars in the mean (spread %.2f), they will cost about %.2f dollars, from %.2f to %.2f.", e.Runs, by, e.MeanUSD, e.SpreadUSD, e.USD, e.LowUSD, e.HighUSD))
}
