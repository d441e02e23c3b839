package show

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Planned is a plan with what it comes to.
type Planned struct {
	Plan     *campaign.Plan    `json:"plan"`
	Forecast campaign.Forecast `json:"forecast"`
	Applies  map[string]string `json:"applies,omitempty"` // yes, no, or what went wrong, by target
	Limits   campaign.Limits   `json:"limits"`            // of one run, by its job
	Budget   job.Spending      `json:"-"`
}

// Plan writes a plan for a terminal.
func Plan(w io.Writer, s Planned) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tBASE\tCOMMIT\tNOTE")
	for _, target := range s.Plan.Targets {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", cell(name(campaign.Row{Target: target})), cell(target.Base), transcript.ShortSHA(target.SHA), cell(s.note(target)))
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

// most explains what a run may use at most, and what all runs may.
func (s Planned) most() []string {
	claim, all, request := s.Plan.Claim, s.Forecast.Most, "the dearest single request"
	if s.Limits.Agents > 1 {
		request += fmt.Sprintf(" of each of its %d agents", s.Limits.Agents)
	}
	tokens := fmt.Sprintf("%s tokens: %s (limits.tokens) plus %s for %s",
		transcript.Thousands(claim.Tokens), transcript.Thousands(s.Limits.Tokens), transcript.Thousands(claim.Tokens-s.Limits.Tokens), request)
	const why = "A limit stops a run only after the answer that exceeds it, so that request counts on top."
	if s.Plan.Unpriced != "" {
		return []string{
			fmt.Sprintf("A run may use up to %s. %s", tokens, why),
			fmt.Sprintf("All runs together may use up to %s tokens. Their cost is unknown: %s.", transcript.Thousands(all.Tokens), s.Plan.Unpriced),
		}
	}
	return []string{
		fmt.Sprintf("A run may cost up to %.2f dollars: %.2f (limits.cost_usd) plus %.2f for %s. %s", claim.USD, s.Limits.USD, claim.USD-s.Limits.USD, request, why),
		fmt.Sprintf("A run may use up to %s.", tokens),
		fmt.Sprintf("All runs together may cost up to %s and use up to %s tokens.", dollars(all.USD, s.Budget.USD), transcript.Thousands(all.Tokens)),
	}
}

// narrow warns of limits that one request can exceed.
func (s Planned) narrow() (warnings []string) {
	warn := func(key, limit, request string) {
		warnings = append(warnings, fmt.Sprintf(
			"Warning: one request can use up all of %s (%s of %s). A run that is killed while it waits for an answer may be unable to resume. Raise the limit or set model.max_output_tokens.",
			key, request, limit))
	}
	request := s.Limits.Request(s.Plan.Claim)
	if s.Plan.Unpriced == "" && s.Limits.USD > 0 && s.Limits.USD <= request.USD {
		warn("limits.cost_usd", fmt.Sprintf("%.2f", s.Limits.USD), fmt.Sprintf("%.2f", request.USD))
	}
	if s.Limits.Tokens > 0 && s.Limits.Tokens <= request.Tokens {
		warn("limits.tokens", transcript.Thousands(s.Limits.Tokens), transcript.Thousands(request.Tokens))
	}
	return warnings
}

func (s Planned) lines() []string {
	f := s.Forecast
	lines := []string{fmt.Sprintf("%d targets: %d to run in %d waves, %d done, %d with a pull request already, %d that cannot run", f.Targets, f.Runs, f.Waves, f.Done, f.Existing, f.Lacking)}
	lines = append(append(lines, s.most()...), s.narrow()...)
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
