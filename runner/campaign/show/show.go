// Package show renders a campaign's status: a table for terminals, Markdown for a tracking issue, and an HTML
// page. It does not know where a status comes from.
//
// Names, addresses and messages come from strangers. The renderers escape them. Links only lead to the forge.
package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// classStyles maps classes to their names and colors for people.
var classStyles = map[campaign.Class]struct {
	words string
	tone  document.Tone
}{
	campaign.Waiting: {"waiting", document.Neutral}, campaign.Running: {"running", document.Doubtful}, campaign.Opened: {"pull request open", document.Good}, campaign.Merged: {"merged", document.Good},
	campaign.ClosedUnmerged: {"closed unmerged", document.Doubtful}, campaign.Committed: {"changed", document.Good}, campaign.NoChange: {"nothing to change", document.Neutral}, campaign.NotApplicable: {"does not apply", document.Neutral},
	campaign.Existing: {"had a pull request", document.Neutral}, campaign.Skipped: {"skipped", document.Neutral}, campaign.Red: {"checks red", document.Bad}, campaign.Budget: {"out of budget", document.Bad},
	campaign.Refused: {"refused by the policy", document.Bad}, campaign.NeedsPerson: {"needs a person", document.Doubtful}, campaign.Failed: {"failed", document.Bad}, campaign.Lacking: {"cannot run", document.Bad},
}

// settledTargets returns the number of settled targets, as a number and as a phrase.
func settledTargets(s campaign.Status) (done int, words string) {
	done = len(s.Targets) - s.Counts[campaign.Waiting] - s.Counts[campaign.Running]
	return done, fmt.Sprintf("%s of %s targets settled", transcript.GroupThousands(done), transcript.GroupThousands(len(s.Targets)))
}

// usedClasses returns the classes that have targets.
func usedClasses(s campaign.Status) []campaign.Class {
	return slices.DeleteFunc(campaign.Classes(), func(c campaign.Class) bool { return s.Counts[c] == 0 })
}

// pullLinkText returns the number of a target's pull request as a link, or nil without one.
func pullLinkText(server string, r campaign.Row) document.Text {
	if r.Pull == nil {
		return nil
	}
	return document.Text{{Text: fmt.Sprintf("#%d", r.Pull.Number), Link: pullLink(server, r)}}
}

func formatTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

// targetName returns a target's name for people: repository, issue and path.
func targetName(t campaign.Target) string {
	text := t.Repository
	if t.Issue > 0 {
		text += fmt.Sprintf("#%d", t.Issue)
	}
	if t.Path != "" {
		text += " " + t.Path
	}
	return text
}

// targetNote returns the most important further information on a target, or "".
func targetNote(r campaign.Row) string {
	switch {
	case r.Class == campaign.Lacking:
		return r.Blocker
	case r.Report == nil && r.Existing != "":
		return "has a pull request: " + r.Existing
	case r.Report == nil && r.SHA != "":
		return fmt.Sprintf("%s at %s", r.Base, clip.SHA(r.SHA))
	case r.Report == nil:
		return ""
	case r.Report.Outcome == "changed" && r.Pull == nil && r.Report.Commit != "":
		return fmt.Sprintf("commit %s on %s", clip.SHA(r.Report.Commit), r.Report.Branch)
	case r.Report.Outcome == "changed":
		return ""
	case r.Report.Message != "":
		return r.Report.Outcome + "/" + r.Report.Reason + ": " + r.Report.Message
	}
	return r.Report.Outcome + "/" + r.Report.Reason
}

// repositoryPattern matches repository names that are safe in an address.
var repositoryPattern = lazyregexp.New(`^[A-Za-z0-9-]+/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// pullLink returns the address of a target's pull request on the forge, or "" if it has none. It does not use the
// address in a report, which is not trusted.
func pullLink(server string, r campaign.Row) string {
	if r.Pull == nil || !repositoryPattern().MatchString(r.Repository) {
		return ""
	}
	return transcript.Site{Server: strings.TrimSuffix(server, "/"), Repository: r.Repository}.Pull(r.Pull.Number)
}

// describeCosts describes the usage so far, and the possible usage of waiting targets.
func describeCosts(s campaign.Status) []string {
	line := fmt.Sprintf("%d runs; %s spent", s.Runs, dollars(s.Spent.USD, s.Budget.USD))
	if s.Claimed.USD > 0 {
		line += fmt.Sprintf(", %.2f claimed", s.Claimed.USD)
	}
	line += fmt.Sprintf("; %s tokens", transcript.GroupThousands(s.Spent.Tokens))
	if s.Budget.Tokens > 0 {
		line += " of " + transcript.GroupThousands(s.Budget.Tokens)
	}
	lines := []string{line + "."}
	if s.Budget.USDPerDay > 0 {
		lines = append(lines, dollars(s.SpentDay, s.Budget.USDPerDay)+" spent today (UTC), by all campaigns of the ledger.")
	}
	return append(lines, describeClaims(s)...)
}

// describeClaims describes the possible usage of waiting targets, or returns nil if no target waits.
func describeClaims(s campaign.Status) (lines []string) {
	waiting := s.Counts[campaign.Waiting]
	if waiting == 0 {
		return nil
	}
	tokens := transcript.GroupThousands[int64]
	cost, totalCost := "The cost of a run is unknown: "+s.Unpriced+".", ""
	late, left := "requests under way when the limit is reached", "run that is left"
	if waiting > 1 {
		left = fmt.Sprintf("%d runs that are left", waiting)
	}
	if s.Unpriced == "" {
		late = "such requests"
		cost = fmt.Sprintf("A run may cost up to %.2f dollars: %.2f (limits.cost_usd) plus %.2f for requests under way when the limit is reached.", s.Claim.USD, s.Limits.USD, s.Claim.USD-s.Limits.USD)
		totalCost = fmt.Sprintf("cost up to %.2f dollars and ", float64(waiting)*s.Claim.USD)
	}
	lines = append(lines, cost,
		fmt.Sprintf("A run may use up to %s tokens: %s (limits.tokens) plus %s for %s.", tokens(s.Claim.Tokens), tokens(s.Limits.Tokens), tokens(s.Claim.Tokens-s.Limits.Tokens), late),
		fmt.Sprintf("The %s may %suse up to %s tokens.", left, totalCost, tokens(int64(waiting)*s.Claim.Tokens)))
	if s.Unpriced == "" && s.Limits.USD > 0 && s.Claim.USD >= 2*s.Limits.USD || s.Limits.Tokens > 0 && s.Claim.Tokens >= 2*s.Limits.Tokens {
		lines = append(lines, "Warning: requests under way can use up a whole limit, so that a killed run may be unable to resume. Raise the limit or set model.max_output_tokens.")
	}
	if s.Estimate != nil {
		lines = append(lines, fmt.Sprintf("By the runs so far, they will cost about %.2f dollars.", *s.Estimate))
	}
	return lines
}

// dollars formats an amount, with its bound unless that is 0.
func dollars(spent, bound float64) string {
	if bound == 0 {
		return fmt.Sprintf("%.2f dollars", spent)
	}
	return fmt.Sprintf("%.2f of %.2f dollars", spent, bound)
}

// describeWait returns why targets wait, or "".
func describeWait(s campaign.Status) string {
	if s.Wait.Why == "" {
		return ""
	}
	line := "Waits: " + s.Wait.Words
	if !s.Wait.Until.IsZero() {
		line += ", until " + formatTime(s.Wait.Until) + " UTC"
	}
	return line + "."
}
