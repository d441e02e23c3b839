package progress

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/document"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/transcript/sections"
)

// Watch shows the events of a run to who looks on: as lines of JSON, in words, as
// the parts of a step's log, and in a comment. Its fields are nil where nobody does.
type Watch struct {
	Events   io.Writer // gets each event as a line of JSON
	Lines    io.Writer // gets lines for a person
	Terminal *Terminal // that Lines writes to; nil where that is none
	Step     *actions.Step
	Unkept   bool // the run leaves nothing behind that its id would lead to

	mu      sync.Mutex              // guards what follows, and Lines
	now     *status                 // nil before its first use
	live    bool                    // the status is shown
	drawn   bool                    // as the last line of the terminal
	written time.Time               // when the last line was
	group   string                  // the part of the log that has begun
	opened  bool                    // it has a line
	outputs map[string]string       // the last ones of commands that failed, without their durations
	comment atomic.Pointer[comment] // while it is shown
}

// Show is the sink of a transcript.
func (w *Watch) Show(e transcript.Event) {
	w.give(e)
	w.show(e)
	if c := w.comment.Load(); c != nil { // which may wait for a server
		c.take(e)
	}
}

// give writes an event as JSON.
func (w *Watch) give(e transcript.Event) {
	if w.Events == nil {
		return
	}
	line, err := e.Line()
	if err == nil {
		_, err = w.Events.Write(append(w.harmlessJSON(line), '\n'))
	}
	if err != nil {
		w.Events = nil // nobody reads any more
	}
}

func (w *Watch) show(e transcript.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status().take(e, time.Now())
	w.begin(w.part(e))
	if w.Events != nil { // whose lines stand in the same log
		w.open()
	}
	if !(w.Unkept && e.Type == transcript.TypeRunStarted) {
		if line := w.named(e); line != "" {
			w.said("agent-ci: " + line + "\n")
		}
	}
	for _, each := range outputsOf(e) {
		w.showOutput(each)
	}
	if tone, verdict := sections.Verdict(w.status().run.View(), false); e.Type == transcript.TypeRunFinished && len(verdict) > 0 {
		w.said("agent-ci: " + document.Sign(tone) + Printable(verdict.String()) + "\n")
	}
	w.draw()
}

// harmlessJSON writes the bracket of an old workflow command as its escape, which
// means the same in a string of JSON.
func (w *Watch) harmlessJSON(line []byte) []byte {
	if w.Step == nil {
		return line
	}
	return bytes.ReplaceAll(line, []byte("##["), []byte(`##\u005b`))
}

// named is the line of an event, behind the name of its agent where another one started that.
func (w *Watch) named(e transcript.Event) string {
	line := Line(e) + w.figures(e)
	if line == "" || e.Type == transcript.TypeAgentStarted {
		return line
	}
	return w.status().by(e) + line
}

// figures returns what was used so far, for the end of the line of a request, of an agent's end and
// of the run's end.
func (w *Watch) figures(e transcript.Event) string {
	switch e.Type {
	case transcript.TypeModelRequest:
		if figures := w.status().soFar(e); figures != "" {
			return "; so far " + figures
		}
	case transcript.TypeAgentFinished:
		if figures := w.status().soFar(e); figures != "" {
			return "; used " + figures
		}
	case transcript.TypeRunFinished:
		return w.status().total()
	}
	return ""
}

// lines put an event into words. What is not here is not shown.
var lines = map[transcript.Type]func(json.RawMessage) string{
	transcript.TypeRunStarted: words(func(d transcript.RunStarted) string {
		words := "run " + d.RunID
		if d.Key != "" {
			words += " of " + d.Key
		}
		if d.Scripted != "" {
			words += fmt.Sprintf("; the model's answers are scripted (%s), no model is asked", d.Scripted)
		}
		return words
	}),
	transcript.TypeWorkspace: words(func(d transcript.Workspace) string {
		return strings.TrimSpace("base is " + d.Base + " " + gitops.Short(d.BaseSHA))
	}),
	transcript.TypePolicy: words(func(d transcript.Policy) string {
		if len(d.Layers) == 0 {
			return "WARNING: commands run unconfined, with all rights of this user"
		}
		line := fmt.Sprintf("commands are confined: %s (%s)", d.Level, strings.Join(d.Layers, ", "))
		if tree := d.WorkTreeWords(); tree != "" {
			line += "; work tree: " + tree
		}
		return line
	}),
	transcript.TypeSetup: words(func(d transcript.Setup) string {
		return fmt.Sprintf("%s: exit %d after %.1f s", strings.TrimPrefix(cmp.Or(d.Kind, "setup")+" "+d.Name, d.Name+" "), d.ExitCode, d.Seconds)
	}),
	transcript.TypeNetwork: words(func(d transcript.Network) string {
		if d.Allowed {
			return ""
		}
		line := fmt.Sprintf("  refused to reach %s: %s", d.Target, d.Reason)
		if d.Request != "" {
			line += " The request was " + d.Request + "."
		}
		if d.Remedy != "" {
			line += " To let it through, " + d.Remedy + "."
		}
		return line
	}),
	transcript.TypeSecretUsed: words(func(d transcript.SecretUsed) string {
		switch {
		case d.Uses == 1 && !d.Ended:
			return fmt.Sprintf("  secret %s is used by %s for %s", d.Name, d.By, d.Target)
		case d.Uses > 1 && d.Ended:
			return fmt.Sprintf("  secret %s was used %d times by %s for %s", d.Name, d.Uses, d.By, d.Target)
		}
		return ""
	}),
	transcript.TypeService: words(func(d transcript.Service) string {
		if d.State == transcript.ServiceReady {
			return fmt.Sprintf("  service %s is ready for %s after %.1f s", d.Name, d.By, d.Seconds)
		}
		return fmt.Sprintf("  service %s for %s: %s", d.Name, d.By, d.Why)
	}),
	transcript.TypeMCPServer: words(func(d transcript.MCPServer) string {
		if d.State == transcript.MCPReady && d.Why == "" {
			return fmt.Sprintf("  server %s is ready after %.1f s with %s", d.Name, d.Seconds, transcript.Count(len(d.Tools), "tool"))
		}
		return fmt.Sprintf("  server %s is %s: %s", d.Name, d.State, d.Why)
	}),
	transcript.TypeHook: words(hookWords),
	transcript.TypeModelRetry: words(func(d transcript.ModelRetry) string {
		return fmt.Sprintf("attempt %d failed (%s), again in %.1f s", d.Attempt, d.Error, d.Wait)
	}),
	transcript.TypeModelFallback: words(func(d transcript.ModelFallback) string {
		return fmt.Sprintf("going on with %s in the place of %s: %s", d.To, d.From, d.Why)
	}),
	transcript.TypeModelRequest: words(func(d transcript.ModelRequest) string { return fmt.Sprintf("turn %d", d.Turn) }),
	transcript.TypeAgentStarted: words(func(d transcript.AgentStarted) string {
		return fmt.Sprintf("agent %s (%s) was started by %s", d.Name, d.Role, d.AskedBy)
	}),
	transcript.TypeAgentFinished: words(func(d transcript.AgentFinished) string {
		return "has ended: " + d.Status + inBrackets(d.Reason)
	}),
	transcript.TypeToolStarted: words(func(d transcript.ToolStarted) string {
		return strings.TrimRight(callIndent(d.Ref())+d.Tool+" "+transcript.Topic(d.Shown()), " ")
	}),
	transcript.TypeToolFinished: words(func(d transcript.ToolFinished) string {
		if !d.Failed {
			return ""
		}
		return fmt.Sprintf("%s%s failed after %.1f s", callIndent(d.Ref()), d.Tool, d.Seconds)
	}),
	transcript.TypePlan: words(planWords),
	transcript.TypeVerify: words(func(d transcript.Verify) string {
		var rows []string
		for _, row := range d.Rows {
			if d.Attempt == 0 {
				rows = append(rows, fmt.Sprintf("%s is %s%s%s", row.Name, cmp.Or(row.Before, "not run"), row.Origin(), inBrackets(row.Tests())))
			} else {
				rows = append(rows, fmt.Sprintf("%s %s → %s%s", row.Name, cmp.Or(row.Before, "not run"), cmp.Or(row.After, "not run"), inBrackets(row.Tests())))
			}
		}
		if d.Attempt == 0 {
			return "before the change: " + strings.Join(rows, ", ")
		}
		return "verified: " + strings.Join(rows, ", ") + proofs(d)
	}),
	transcript.TypeLesson: words(func(d transcript.Lesson) string { return "lesson proposed: " + d.Claim }),
	transcript.TypePublish: words(func(d transcript.Publish) string {
		switch d.Step {
		case "commit":
			return fmt.Sprintf("committed %s on %s", gitops.Short(d.HeadSHA), d.Branch)
		case "push":
			return fmt.Sprintf("pushed %s to %s", d.Branch, d.Remote)
		case "review", "labels", "comment":
			return fmt.Sprintf("%s on #%d %s: %s", d.Step, d.Number, d.Operation, d.URL)
		}
		if d.Of != "" {
			return fmt.Sprintf("pull request of %s %s: %s", d.Of, d.Operation, d.URL)
		}
		return fmt.Sprintf("pull request %s: %s", d.Operation, d.URL)
	}),
	transcript.TypeWarning: words(func(d transcript.Warning) string { return "warning: " + d.Message }),
}

// planWords returns how many steps of a plan are done, and the current step.
func planWords(d transcript.Plan) string {
	done := 0
	for _, step := range d.Steps {
		if step.Status == "completed" {
			done++
		}
	}
	line := fmt.Sprintf("  plan: %d of %d done", done, len(d.Steps))
	at, begun := currentStep(d.Steps)
	switch {
	case at < 0:
		return line
	case begun:
		return line + ", now: " + d.Steps[at].Step
	}
	return line + ", next: " + d.Steps[at].Step
}

// callIndent returns the indent of a call's line. A call that a script made is below that script.
func callIndent(call transcript.CallRef) string {
	if call.Caller > 0 {
		return "    "
	}
	return "  "
}

// inBrackets is what is added to words; nothing for empty text.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// proofs are the classes of the test files of a change, and how many tests of the base it
// took away or breaks, for the end of a line.
func proofs(d transcript.Verify) string {
	const most = 10
	var all []string
	for _, p := range d.Proofs() {
		if len(all) == most {
			all = append(all, "…")
			break
		}
		all = append(all, p.File+" "+p.Class)
	}
	said := ""
	if len(all) > 0 {
		said = "; red proof: " + strings.Join(all, ", ")
	}
	old, scripts := d.CountOldTests()
	if old > 0 {
		said += "; " + transcript.Count(old, "test") + " of the base gone or failing"
	}
	if scripts > 0 {
		said += "; " + transcript.Count(scripts, "file") + " of the checks changed to pass"
	}
	return said
}

// words reads the data of one type of event.
func words[T any](of func(T) string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var data T
		if json.Unmarshal(raw, &data) != nil {
			return ""
		}
		return of(data)
	}
}

// Line puts an event into words, on one line; empty for what is not shown.
func Line(e transcript.Event) string {
	describe, shown := lines[e.Type]
	if !shown {
		return ""
	}
	return Printable(describe(e.Data))
}

// Printable is text as one line for a terminal or a log, which it cannot steer and
// where all of it can be seen: the words hold text of models, repositories and
// commands. Ends of lines and tabs become blanks, other control characters are
// shown as pictures, characters of format by their number.
func Printable(text string) string {
	line := strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return ' '
		}
		return c
	}, text)
	return markdown.Show(strings.ReplaceAll(line, "\x1b", "\u241b"))
}
