// Package show owns how people read the status of a campaign: as a table for a terminal, Markdown
// for one tracking issue, CSV, and a page. It refuses to know where a status comes from.
//
// Names, addresses and messages in a status were written by strangers; what is written here leads
// nowhere but to pages of the forge, and does nothing.
package show

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// words are the classes as people read them.
var words = map[campaign.Class]string{
	campaign.Waiting: "waiting", campaign.Running: "running", campaign.Opened: "pull request open", campaign.Merged: "merged",
	campaign.ClosedUnmerged: "closed by a person", campaign.Committed: "changed", campaign.NoChange: "nothing to change", campaign.NotApplicable: "does not apply",
	campaign.Existing: "had a pull request", campaign.Skipped: "skipped", campaign.Red: "checks red", campaign.Budget: "out of budget",
	campaign.Refused: "refused by the policy", campaign.NeedsPerson: "needs a person", campaign.Failed: "failed", campaign.Lacking: "cannot run",
}

// counts are the classes that there are, with how many targets each has.
func counts(s campaign.Status) (all []string) {
	for _, class := range campaign.Classes() {
		if n := s.Counts[class]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, words[class]))
		}
	}
	return all
}

// spending are the lines that tell what was used.
func spending(s campaign.Status) []string {
	line := fmt.Sprintf("%d runs; %s spent", s.Runs, dollars(s.Spent.USD, s.Budget.USD))
	if s.Claimed.USD > 0 {
		line += fmt.Sprintf(", %.2f claimed", s.Claimed.USD)
	}
	line += fmt.Sprintf("; %s tokens", transcript.Thousands(s.Spent.Tokens))
	if s.Budget.Tokens > 0 {
		line += " of " + transcript.Thousands(s.Budget.Tokens)
	}
	lines := []string{line}
	if s.Budget.USDPerDay > 0 {
		lines = append(lines, dollars(s.SpentDay, s.Budget.USDPerDay)+" spent today (UTC), by all campaigns of the ledger")
	}
	return lines
}

func dollars(spent, bound float64) string {
	if bound == 0 {
		return fmt.Sprintf("%.2f dollars", spent)
	}
	return fmt.Sprintf("%.2f of %.2f dollars", spent, bound)
}

// waiting tells why targets wait; empty where none does.
func waiting(s campaign.Status) string {
	if s.Wait.Why == "" {
		return ""
	}
	line := "Waits: " + s.Wait.Words
	if !s.Wait.Until.IsZero() {
		line += ", until " + s.Wait.Until.UTC().Format("2006-01-02 15:04 UTC")
	}
	return line + "."
}

// name is a target as people call it.
func name(r campaign.Row) string {
	text := r.Repository
	if r.Issue > 0 {
		text += fmt.Sprintf("#%d", r.Issue)
	}
	if r.Path != "" {
		text += " " + r.Path
	}
	return text
}

// why is what there is to say of a target beside its class.
func why(r campaign.Row) string {
	switch {
	case r.Class == campaign.Lacking:
		return r.Lacks
	case r.Report == nil:
		return ""
	case r.Report.Outcome == "changed" && r.Pull == nil && r.Report.Commit != "":
		return fmt.Sprintf("commit %s on %s", transcript.ShortSHA(r.Report.Commit), r.Report.Branch)
	case r.Report.Outcome == "changed":
		return ""
	case r.Report.Message != "":
		return r.Report.Outcome + "/" + r.Report.Reason + ": " + r.Report.Message
	}
	return r.Report.Outcome + "/" + r.Report.Reason
}

// Table writes the status for a terminal.
func Table(w io.Writer, s campaign.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tSTATE\tPULL REQUEST\tRUN\tNOTE")
	folder := ""
	for _, r := range s.Targets {
		pull, run := "", ""
		if r.Pull != nil {
			pull = fmt.Sprintf("#%d", r.Pull.Number)
		}
		if r.Directory != "" {
			folder, run = filepath.Dir(r.Directory), filepath.Base(r.Directory)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", progress.Printable(name(r)), words[r.Class], pull, progress.Printable(run), progress.Printable(markdown.Cut(why(r), 120)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	lines := append([]string{fmt.Sprintf("%d targets: %s", len(s.Targets), strings.Join(counts(s), ", "))}, spending(s)...)
	if folder != "" {
		lines = append(lines, "The directories of RUN are in "+progress.Printable(folder))
	}
	if line := waiting(s); line != "" {
		lines = append(lines, line)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// bar is how many characters the bar of a burn-down has.
const bar = 40

// An issue's text has at most 65,536 UTF-16 units; the rest is room for people's edits.
const (
	mostRows  = 100 // targets of a class
	mostUnits = 58_000
)

// Markdown writes the burn-down for one tracking issue.
func Markdown(w io.Writer, s campaign.Status) error {
	var out strings.Builder
	total := len(s.Targets)
	left := s.Counts[campaign.Waiting] + s.Counts[campaign.Running]
	settled := total - left
	full := 0
	if total > 0 {
		full = settled * bar / total
	}
	fmt.Fprintf(&out, "## Campaign %s\n\n`%s%s` %d of %d targets settled\n\n", markdown.Text(s.Campaign), strings.Repeat("█", full), strings.Repeat("░", bar-full), settled, total)
	out.WriteString("| | targets |\n|---|--:|\n")
	for _, class := range campaign.Classes() {
		if n := s.Counts[class]; n > 0 {
			fmt.Fprintf(&out, "| %s | %d |\n", words[class], n)
		}
	}
	out.WriteString("\n")
	for _, line := range append(spending(s), waiting(s)) {
		if line != "" {
			out.WriteString(markdown.Text(line) + "\n\n")
		}
	}
	for _, class := range slices.Backward(campaign.Classes()) { // what asks for a person first
		writeClass(&out, s, class)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeClass writes the targets of a class, folded, as far as there is room for them.
func writeClass(out *strings.Builder, s campaign.Status, class campaign.Class) {
	total := s.Counts[class]
	if total == 0 || class == campaign.Waiting {
		return
	}
	fmt.Fprintf(out, "<details><summary>%s: %d</summary>\n\n", words[class], total)
	written, units := 0, markdown.Units(out.String())
	for _, r := range s.Targets {
		if r.Class != class {
			continue
		}
		line := markdownRow(s, r)
		if units += markdown.Units(line); written == mostRows || units > mostUnits {
			break
		}
		out.WriteString(line)
		written++
	}
	if more := total - written; more > 0 {
		fmt.Fprintf(out, "- and %d more\n", more)
	}
	out.WriteString("\n</details>\n\n")
}

func markdownRow(s campaign.Status, r campaign.Row) string {
	line := "- " + markdown.Code(markdown.Cut(name(r), 200))
	if link := pullLink(s.Server, r); link != "" {
		line += fmt.Sprintf(" [#%d](%s)", r.Pull.Number, link)
	}
	if text := why(r); text != "" {
		line += ": " + markdown.Text(markdown.Cut(text, 300))
	}
	return line + "\n"
}

// repository is what a repository is called in an address.
var repository = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// pullLink is the address of a target's pull request on the pages of the forge, whatever a report
// says of it.
func pullLink(server string, r campaign.Row) string {
	if r.Pull == nil || !repository.MatchString(r.Repository) {
		return ""
	}
	return transcript.Site{Server: strings.TrimSuffix(server, "/"), Repository: r.Repository}.Pull(r.Pull.Number)
}

// CSV writes a line for each target.
func CSV(w io.Writer, s campaign.Status) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"key", "repository", "issue", "path", "class", "outcome", "reason", "attempts", "cost_usd", "tokens", "commit", "branch", "pull_request", "run_id", "run_directory"}}
	for _, r := range s.Targets {
		lines = append(lines, csvLine(r))
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func csvLine(r campaign.Row) []string {
	line := []string{r.Key, r.Repository, "", r.Path, string(r.Class), "", "", strconv.Itoa(r.Attempts), "", "", "", "", "", "", r.Directory}
	if r.Issue > 0 {
		line[2] = strconv.Itoa(r.Issue)
	}
	if p := r.Report; p != nil {
		line[5], line[6], line[10], line[11], line[12], line[13] = p.Outcome, p.Reason, p.Commit, p.Branch, p.PullRequest.URL, p.RunID
		if p.CostUSD != nil {
			line[8] = strconv.FormatFloat(*p.CostUSD, 'f', -1, 64)
		}
		if p.Tokens != nil {
			line[9] = strconv.FormatInt(*p.Tokens, 10)
		}
	}
	for i, cell := range line {
		line[i] = plain(cell)
	}
	return line
}

// plain keeps a spreadsheet from taking a cell for a formula:
// https://owasp.org/www-community/attacks/CSV_Injection
func plain(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
