package repair

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// thread is a pull request with its one comment about repairs.
type thread struct {
	Server     forge.Forge
	Repository forge.Repository
	Number     int
	Run        string // id of this run
	Link       string // page of the CI run; may be empty
	Redact     func(string) string

	id          int64  // id of the comment; 0 for none
	shown       string // text of the posted comment
	storedState state  // state in the posted comment
	newState    state
	redSummary  string
	notes       []string
	conclusion  string
	remaining   string // sentence on the work left for a person
}

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
func (t *thread) readComment(ctx context.Context) error {
	comments, err := t.Repository.Comments(ctx, t.Number)
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("The comments of pull request #%d cannot be read", t.Number), err)
	}
	t.id, t.shown, t.storedState = 0, "", state{}
	own := intake.ByTokenAccount(ctx, t.Server)
	for _, c := range comments {
		if strings.HasPrefix(c.Body, intake.RepairMark) && own(c) {
			t.id, t.shown, t.storedState = c.ID, c.Body, readState(c.Body)
			break
		}
	}
	return nil
}

// setCase sets the comment's new state, and its list of failed checks.
func (t *thread) setCase(c *Case, last intake.Repair) {
	alreadyRerun := t.storedState.head == c.Head && t.storedState.rerunStarted
	t.newState = state{head: c.Head, run: t.Run, attempts: last.Attempt, spentUSD: last.SpentUSD, rerunStarted: alreadyRerun}
	var b strings.Builder
	fmt.Fprintf(&b, "**Checks on %s**\n\n", gitops.Short(c.Head))
	for _, red := range c.Red {
		fmt.Fprintf(&b, "- %s: %s\n", red.link(), red.describeFailure())
	}
	for _, red := range c.OnBase {
		fmt.Fprintf(&b, "- %s: red on %s too, so this pull request is not the cause\n", red.link(), markdown.Text(c.Pull.Base))
	}
	if c.ConflictsWithBase {
		fmt.Fprintf(&b, "- %s moved into conflict with this pull request\n", markdown.Text(c.Pull.Base))
	}
	t.redSummary = b.String()
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
func (t *thread) listRemaining(c *Case) {
	var all []string
	for _, red := range c.Red {
		all = append(all, red.link())
	}
	if c.ConflictsWithBase {
		all = append(all, "the conflict with "+markdown.Text(c.Pull.Base))
	}
	t.remaining = "Left for a person: " + strings.Join(all, ", ") + "."
}

// announceAttempt announces the attempt before the agent starts, so that a killed attempt counts too. If two
// runs announce at once, the one whose comment remains continues. allowed is the number of attempts.
func (t *thread) announceAttempt(ctx context.Context, p *Plan, allowed int) error {
	decidedOn := t.storedState
	if err := t.readComment(ctx); err != nil {
		return err
	}
	if t.storedState != decidedOn {
		return t.startedElsewhere()
	}
	t.newState.attempts = p.Attempt.Attempt
	t.conclusion = fmt.Sprintf("agent-ci is at work on attempt %d of %d.", p.Attempt.Attempt, allowed)
	if err := t.writeComment(ctx); err != nil {
		return err
	}
	ownID, ownText := t.id, t.shown
	if err := t.readComment(ctx); err != nil {
		return err
	}
	if t.storedState.run == t.newState.run || t.storedState == decidedOn { // our comment, or the forge does not show it yet
		t.id, t.shown, t.storedState = ownID, ownText, t.newState
		return nil
	}
	if t.id != ownID {
		if err := t.Repository.DeleteComment(ctx, ownID); err != nil {
			return t.writeFailure(err)
		}
	}
	return t.startedElsewhere()
}

// startedElsewhere returns the error for a repair that another run has begun.
func (t *thread) startedElsewhere() error {
	return outcome.Stopf(outcome.Skipped, "other_run", "Another run (%s) began to repair pull request #%d at the same time; this run left it to that one.",
		cmp.Or(t.storedState.run, "whose comment is gone"), t.Number)
}

// attemptEnd is the result of an attempt.
type attemptEnd struct {
	outcome.Stop
	PushedSHA string // pushed commit; "" for none
	SpentUSD  float64
	IsLast    bool // no other attempt follows
}

// conclude reports the result of the attempt in the comment.
func (t *thread) conclude(ctx context.Context, c *Case, e attemptEnd) error {
	cost := e.SpentUSD - t.newState.spentUSD
	if err := t.readComment(ctx); err != nil {
		return err
	}
	if t.id != 0 && t.storedState.run != t.newState.run && e.PushedSHA == "" {
		return t.addCost(ctx, cost)
	}
	t.newState.spentUSD = e.SpentUSD
	if t.storedState.head == t.newState.head {
		t.newState.spentUSD = t.storedState.spentUSD + cost // other runs may have added their cost meanwhile
	}
	if e.PushedSHA != "" {
		t.newState.head, t.newState.rerunStarted = e.PushedSHA, false
		t.conclusion = fmt.Sprintf("Attempt %d was pushed as %s; its checks decide.", t.newState.attempts, gitops.Short(e.PushedSHA))
		return t.writeComment(ctx)
	}
	if e.IsLast {
		t.listRemaining(c)
	}
	t.conclusion = fmt.Sprintf("Attempt %d pushed nothing and ended as **%s** (%s): %s", t.newState.attempts, e.Outcome, e.Reason, markdown.Text(markdown.Cut(e.Message, 2000)))
	return t.writeComment(ctx)
}

// addCost adds this run's cost to a comment that another run wrote. It changes nothing else.
func (t *thread) addCost(ctx context.Context, cost float64) error {
	marks := stateMark().FindAllStringIndex(t.shown, -1)
	if len(marks) == 0 {
		return nil
	}
	before := describeSpent(t.storedState.spentUSD)
	t.storedState.spentUSD += cost
	withCost := strings.Replace(t.shown[:marks[len(marks)-1][0]], before, describeSpent(t.storedState.spentUSD), 1) + t.storedState.String()
	if err := t.Repository.EditComment(ctx, t.id, withCost); err != nil {
		return t.writeFailure(err)
	}
	return nil
}

// describeSpent returns the sentence with the cost of all attempts.
func describeSpent(dollars float64) string {
	return fmt.Sprintf("All attempts so far cost $%s.", intake.FormatDollars(dollars))
}

// text returns the comment's text with its state.
func (t *thread) text() string {
	paragraphs := []string{strings.TrimRight(t.redSummary, "\n")}
	paragraphs = append(paragraphs, t.notes...)
	end := t.conclusion
	if t.Link != "" {
		end += " (" + markdown.Link("run", t.Link) + ")"
	}
	paragraphs = append(paragraphs, end)
	if t.remaining != "" {
		paragraphs = append(paragraphs, t.remaining)
	}
	if t.newState.spentUSD > 0 {
		paragraphs = append(paragraphs, describeSpent(t.newState.spentUSD))
	}
	return intake.RepairMark + t.Redact(strings.Join(paragraphs, "\n\n")) + "\n\n" + t.newState.String()
}

// writeComment creates or updates the comment. The comment counts the attempts, so an attempt does not start if
// this fails.
func (t *thread) writeComment(ctx context.Context) error {
	text := t.text()
	if text == t.shown {
		return nil
	}
	var err error
	if t.id != 0 {
		err = t.Repository.EditComment(ctx, t.id, text)
	} else {
		var made *forge.Comment
		if made, err = t.Repository.CreateComment(ctx, t.Number, text); err == nil {
			t.id = made.ID
		}
	}
	if err != nil {
		return t.writeFailure(err)
	}
	t.shown, t.storedState = text, t.newState
	return nil
}

// writeFailure returns the error for a comment that cannot be written.
func (t *thread) writeFailure(err error) error {
	return intake.ForgeFailure(fmt.Sprintf("The comment on pull request #%d, by which attempts to repair it are counted, cannot be written", t.Number), err)
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
