package repair

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Thread is the pull request with the one comment that tells of its repairs.
type Thread struct {
	Server     forge.Forge
	Repository forge.Repository
	Number     int
	Link       string // page of the CI run; may be empty
	Redact     func(string) string

	id    int64  // of the comment; 0 for none
	shown string // that stands there
	noted state  // that it tells of
	now   state
	found string // what is red
	said  []string
	end   string
	left  string
}

// state is what a comment tells later runs, which no page shows.
type state struct {
	head     string
	attempts int
	spent    float64
	rerun    bool // was asked for
}

var stateMark = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<!-- agent-ci: repair of ([0-9a-f]{40,64}) attempts=([0-9]{1,9}) spent=([0-9]{1,9}\.[0-9]{4}) rerun=(true|false) -->`)
})

func (s state) String() string {
	return fmt.Sprintf("<!-- agent-ci: repair of %s attempts=%d spent=%s rerun=%v -->\n", s.head, s.attempts, intake.Dollars(s.spent), s.rerun)
}

func readState(body string) state {
	m := stateMark().FindStringSubmatch(body)
	if m == nil {
		return state{}
	}
	return state{head: m[1], attempts: intake.ReadAttempts(m[2]), spent: intake.ReadDollars(m[3]), rerun: m[4] == "true"}
}

// read finds the comment of earlier repairs. The mark alone proves nothing, since anybody
// can write it.
func (t *Thread) read(ctx context.Context) error {
	comments, err := t.Repository.Comments(ctx, t.Number)
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("The comments of pull request #%d cannot be read", t.Number), err)
	}
	own := intake.TokensComments(ctx, t.Server)
	for _, c := range comments {
		if strings.HasPrefix(c.Body, intake.RepairMark) && own(c) {
			t.id, t.shown, t.noted = c.ID, c.Body, readState(c.Body)
		}
	}
	return nil
}

// begin makes the comment one of this case.
func (t *Thread) begin(c *Case, so Bounds) {
	t.now = state{head: c.Head, attempts: so.Attempts, spent: so.Spent, rerun: t.noted.head == c.Head && t.noted.rerun}
	var b strings.Builder
	fmt.Fprintf(&b, "**Checks on %s**\n\n", gitops.Short(c.Head))
	for _, red := range c.Red {
		fmt.Fprintf(&b, "- %s: %s\n", red.link(), red.why())
	}
	for _, red := range c.OnBase {
		fmt.Fprintf(&b, "- %s: red on %s too, so it is nothing of this pull request\n", red.link(), markdown.Text(c.Pull.Base))
	}
	if c.Clashes {
		fmt.Fprintf(&b, "- %s moved into conflict with this pull request\n", markdown.Text(c.Pull.Base))
	}
	t.found = b.String()
}

func (r Red) link() string {
	name := markdown.Cut(r.Name, 200)
	if !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") {
		return markdown.Text(name)
	}
	return markdown.Link{Name: name, Address: r.URL}.String()
}

func (r Red) why() string {
	why := r.Conclusion
	if len(r.Failed) > 0 {
		why += ", in " + markdown.Text(markdown.Cut(strings.Join(r.Failed, ", "), 200))
	}
	if r.Infrastructure != "" {
		why += " (" + r.Infrastructure + ")"
	}
	return why
}

func (t *Thread) add(sentence string) { t.said = append(t.said, sentence) }

func (t *Thread) say(end string) { t.end = end }

// leave names what is left for a person.
func (t *Thread) leave(c *Case) {
	var all []string
	for _, red := range c.Red {
		all = append(all, red.link())
	}
	if c.Clashes {
		all = append(all, "the conflict with "+markdown.Text(c.Pull.Base))
	}
	t.left = "Left for a person: " + strings.Join(all, ", ") + "."
}

// Attempt says that an agent is at work, before it is: an attempt that is killed counts.
func (t *Thread) Attempt(ctx context.Context, p *Plan, of int) error {
	t.now.attempts = p.Attempt.Attempt
	t.say(fmt.Sprintf("agent-ci is at work on attempt %d of %d.", p.Attempt.Attempt, of))
	return t.write(ctx)
}

// Ended is how an attempt ended.
type Ended struct {
	Stop   *outcome.Stop
	Commit string // that was pushed; empty for none
	Spent  float64
	Last   bool // no other attempt follows
}

// Conclude says how the attempt ended.
func (t *Thread) Conclude(ctx context.Context, c *Case, e Ended) error {
	before := t.now.spent
	t.now.spent = e.Spent
	if e.Commit != "" {
		t.now.head, t.now.rerun = e.Commit, false
		t.say(fmt.Sprintf("Attempt %d was pushed as %s; its checks decide.", t.now.attempts, gitops.Short(e.Commit)))
		return t.write(ctx)
	}
	if others, err := t.others(ctx, e.Spent-before); err != nil || others {
		return err
	}
	if e.Last {
		t.leave(c)
	}
	t.say(fmt.Sprintf("Attempt %d pushed nothing and ended as **%s** (%s): %s", t.now.attempts, e.Stop.Outcome, e.Stop.Reason, markdown.Text(markdown.Cut(e.Stop.Message, 2000))))
	return t.write(ctx)
}

// others says whether another run tells of the pull request by now. What this one cost is
// added there, and the rest is that run's.
func (t *Thread) others(ctx context.Context, cost float64) (bool, error) {
	wrote := t.shown
	if err := t.read(ctx); err != nil || t.shown == wrote {
		return false, err
	}
	t.noted.spent += cost
	with := stateMark().ReplaceAllString(t.shown, strings.TrimSpace(t.noted.String()))
	if with == t.shown || t.noted.head == "" {
		return true, nil
	}
	return true, t.Repository.EditComment(ctx, t.id, with)
}

// text is the comment.
func (t *Thread) text() string {
	paragraphs := []string{strings.TrimRight(t.found, "\n")}
	paragraphs = append(paragraphs, t.said...)
	end := t.end
	if t.Link != "" {
		end += " (" + markdown.Link{Name: "run", Address: t.Link}.String() + ")"
	}
	paragraphs = append(paragraphs, end)
	if t.left != "" {
		paragraphs = append(paragraphs, t.left)
	}
	if t.now.spent > 0 {
		paragraphs = append(paragraphs, fmt.Sprintf("All attempts so far cost $%s.", intake.Dollars(t.now.spent)))
	}
	return intake.RepairMark + t.Redact(strings.Join(paragraphs, "\n\n")) + "\n\n" + t.now.String()
}

// write puts the comment there. Attempts are counted by it: without it there is none.
func (t *Thread) write(ctx context.Context) error {
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
		return intake.ForgeFailure(fmt.Sprintf("The comment on pull request #%d, by which attempts to repair it are counted, cannot be written", t.Number), err)
	}
	t.shown = text
	return nil
}

func names(all []Red) string {
	var list []string
	for _, red := range all[:min(len(all), mostRed)] {
		list = append(list, fmt.Sprintf("%q", markdown.Cut(red.Name, 100)))
	}
	return strings.Join(list, ", ")
}

func whys(all []Red) string {
	var list []string
	for _, red := range all[:min(len(all), mostRed)] {
		list = append(list, fmt.Sprintf("%q: %s", markdown.Cut(red.Name, 100), red.Infrastructure))
	}
	return strings.Join(list, "; ")
}
