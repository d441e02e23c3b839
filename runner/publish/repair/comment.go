package repair

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// state is hidden data in the comment, for later runs.
type state struct {
	head         string
	run          string // the comment's last writer
	attempts     int
	spentUSD     float64
	rerunStarted bool // the failed jobs were started again
}

var stateMark = lazyregexp.New(`<!-- agent-ci: repair of ([0-9a-f]{40,64}) by ([0-9A-Za-z._-]{1,100}) attempts=([0-9]{1,10}) spent=([0-9]{1,9}\.[0-9]{4}) rerun=(true|false) -->`)

func (s state) String() string {
	return fmt.Sprintf("<!-- agent-ci: repair of %s by %s attempts=%d spent=%s rerun=%v -->\n", s.head, s.run, s.attempts, intake.FormatDollars(s.spentUSD), s.rerunStarted)
}

// readState parses the last mark in a comment. The text before it is not trusted, and may have other marks.
func readState(body string) state {
	all := stateMark().FindAllStringSubmatch(body, -1)
	if len(all) == 0 {
		return state{}
	}
	m := all[len(all)-1]
	return state{head: m[1], run: m[2], attempts: intake.ReadAttempts(m[3]), spentUSD: intake.ReadDollars(m[4]), rerunStarted: m[5] == "true"}
}

// readComment finds the comment of earlier repairs, the oldest if there are two. Anybody can write the mark, so
// the author must be the token's account.
func (a *Attempt) readComment(ctx context.Context) error {
	comments, err := a.repository.Comments(ctx, a.Pull.Number)
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("The comments of pull request #%d cannot be read", a.Pull.Number), err)
	}
	a.id, a.shown, a.storedState = 0, "", state{}
	own := intake.ByTokenAccount(ctx, a.server)
	for _, c := range comments {
		if strings.HasPrefix(c.Body, intake.RepairMark) && own(c) {
			a.id, a.shown, a.storedState = c.ID, c.Body, readState(c.Body)
			break
		}
	}
	return nil
}

// stateAfter returns the comment's new state after the last attempt.
func (a *Attempt) stateAfter(last intake.Repair) state {
	alreadyRerun := a.storedState.head == a.Head && a.storedState.rerunStarted
	return state{head: a.Head, run: a.record.ID, attempts: last.Attempt, spentUSD: last.SpentUSD, rerunStarted: alreadyRerun}
}

// listRed returns the comment's list of what is wrong with the pull request.
func (a *Attempt) listRed() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**Checks on %s**\n\n", clip.SHA(a.Head))
	for _, red := range a.Red {
		fmt.Fprintf(&b, "- %s: %s\n", red.link(), red.describeFailure())
	}
	for _, red := range a.OnBase {
		fmt.Fprintf(&b, "- %s: red on %s too, so this pull request is not the cause\n", red.link(), markdown.Text(a.Pull.Base))
	}
	if a.ConflictsWithBase {
		fmt.Fprintf(&b, "- %s moved into conflict with this pull request\n", markdown.Text(a.Pull.Base))
	}
	return b.String()
}

// link returns the check's name as a link to its page.
func (r Red) link() string {
	name := markdown.Cut(r.Name, 200)
	if !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") {
		return markdown.Text(name)
	}
	return markdown.Link(name, r.URL)
}

// describeFailure describes how a check failed, for the comment.
func (r Red) describeFailure() string {
	why := r.Conclusion
	if len(r.FailedSteps) > 0 {
		why += ", in " + markdown.Text(markdown.Cut(strings.Join(r.FailedSteps, ", "), 200))
	}
	if r.Infrastructure != "" {
		why += " (" + r.Infrastructure + ")"
	}
	return why
}

// listRemaining sets the sentence on the work left for a person.
func (a *Attempt) listRemaining() {
	var all []string
	for _, red := range a.Red {
		all = append(all, red.link())
	}
	if a.ConflictsWithBase {
		all = append(all, "the conflict with "+markdown.Text(a.Pull.Base))
	}
	a.remaining = "Left for a person: " + strings.Join(all, ", ") + "."
}

// Begin announces the attempt in the comment before the agent starts, so that a killed attempt counts too. If two
// runs announce at once, the one whose comment remains continues.
func (a *Attempt) Begin(ctx context.Context) error {
	decidedOn := a.storedState
	if err := a.readComment(ctx); err != nil {
		return err
	}
	if a.storedState != decidedOn {
		return a.startedElsewhere()
	}
	a.newState.attempts = a.Next.Attempt
	a.conclusion = fmt.Sprintf("agent-ci is at work on attempt %d of %d.", a.Next.Attempt, a.limits.Attempts)
	if err := a.writeComment(ctx); err != nil {
		return err
	}
	ownID, ownText := a.id, a.shown
	if err := a.readComment(ctx); err != nil {
		return err
	}
	if a.storedState.run == a.newState.run || a.storedState == decidedOn { // our comment, or the forge does not show it yet
		a.id, a.shown, a.storedState = ownID, ownText, a.newState
		return nil
	}
	if a.id != ownID {
		if err := a.repository.DeleteComment(ctx, ownID); err != nil {
			return a.writeFailure(err)
		}
	}
	return a.startedElsewhere()
}

// startedElsewhere returns the error for a repair that another run has begun.
func (a *Attempt) startedElsewhere() error {
	return outcome.Stopf(outcome.Skipped, "other_run", "Another run (%s) began to repair pull request #%d at the same time; this run left it to that one.",
		cmp.Or(a.storedState.run, "whose comment is gone"), a.Pull.Number)
}

// Conclude reports the attempt's result in the comment. cost is its cost, or nil if unknown. pushed is the pushed
// commit, or "".
func (a *Attempt) Conclude(ctx context.Context, stop *outcome.Stop, cost *float64, pushed string) {
	if err := a.conclude(ctx, stop, a.Next.TotalUSD(cost)-a.Next.SpentUSD, pushed); err != nil {
		a.record.Warn("comment_not_written", "The result of the repair could not be reported on the pull request: %v", err)
	}
}

func (a *Attempt) conclude(ctx context.Context, stop *outcome.Stop, cost float64, pushed string) error {
	if err := a.readComment(ctx); err != nil {
		return err
	}
	if a.id != 0 && a.storedState.run != a.newState.run && pushed == "" {
		return a.addCost(ctx, cost)
	}
	if a.storedState.head == a.newState.head {
		a.newState.spentUSD = a.storedState.spentUSD // other runs may have added their cost meanwhile
	}
	a.newState.spentUSD += cost
	if pushed != "" {
		a.newState.head, a.newState.rerunStarted = pushed, false
		a.conclusion = fmt.Sprintf("Attempt %d was pushed as %s; its checks decide.", a.newState.attempts, clip.SHA(pushed))
		return a.writeComment(ctx)
	}
	if a.Next.Attempt >= a.limits.Attempts {
		a.listRemaining()
	}
	folder := a.record.Path()
	message := strings.NewReplacer(folder+"/", "", folder, "the run directory").Replace(stop.Message) // readers of the comment have no access to this machine's folder
	a.conclusion = fmt.Sprintf("Attempt %d pushed nothing and ended as **%s** (%s): %s", a.newState.attempts, stop.Outcome, stop.Reason, markdown.Text(markdown.Cut(message, 2000)))
	return a.writeComment(ctx)
}

// addCost adds this run's cost to a comment that another run wrote. It changes nothing else.
func (a *Attempt) addCost(ctx context.Context, cost float64) error {
	marks := stateMark().FindAllStringIndex(a.shown, -1)
	if len(marks) == 0 {
		return nil
	}
	before := describeSpent(a.storedState.spentUSD)
	a.storedState.spentUSD += cost
	withCost := strings.Replace(a.shown[:marks[len(marks)-1][0]], before, describeSpent(a.storedState.spentUSD), 1) + a.storedState.String()
	if err := a.repository.EditComment(ctx, a.id, withCost); err != nil {
		return a.writeFailure(err)
	}
	return nil
}

// describeSpent returns the sentence with the cost of all attempts.
func describeSpent(dollars float64) string {
	return fmt.Sprintf("All attempts so far cost $%s.", intake.FormatDollars(dollars))
}

// text returns the comment's text with its state.
func (a *Attempt) text() string {
	paragraphs := []string{strings.TrimRight(a.redSummary, "\n")}
	paragraphs = append(paragraphs, a.notes...)
	end := a.conclusion
	if a.link != "" {
		end += " (" + markdown.Link("run", a.link) + ")"
	}
	paragraphs = append(paragraphs, end)
	if a.remaining != "" {
		paragraphs = append(paragraphs, a.remaining)
	}
	if a.newState.spentUSD > 0 {
		paragraphs = append(paragraphs, describeSpent(a.newState.spentUSD))
	}
	return intake.RepairMark + a.record.Redact(strings.Join(paragraphs, "\n\n")) + "\n\n" + a.newState.String()
}

// writeComment creates or updates the comment. The comment counts the attempts, so an attempt does not start if
// this fails.
func (a *Attempt) writeComment(ctx context.Context) error {
	text := a.text()
	if text == a.shown {
		return nil
	}
	var err error
	if a.id != 0 {
		err = a.repository.EditComment(ctx, a.id, text)
	} else {
		var made *forge.Comment
		if made, err = a.repository.CreateComment(ctx, a.Pull.Number, text); err == nil {
			a.id = made.ID
		}
	}
	if err != nil {
		return a.writeFailure(err)
	}
	a.shown, a.storedState = text, a.newState
	return nil
}

// writeFailure returns the error for a comment that cannot be written.
func (a *Attempt) writeFailure(err error) error {
	return intake.ForgeFailure(fmt.Sprintf("The comment on pull request #%d, by which attempts to repair it are counted, cannot be written", a.Pull.Number), err)
}

// nameChecks joins the names of checks, each with its infrastructure failure if it had one.
func nameChecks(all []Red, separator string) string {
	var named []string
	for _, red := range all[:min(len(all), maxRed)] {
		name := fmt.Sprintf("%q", markdown.Cut(red.Name, 100))
		if red.Infrastructure != "" {
			name += ": " + red.Infrastructure
		}
		named = append(named, name)
	}
	return strings.Join(named, separator)
}
