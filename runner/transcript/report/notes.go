package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/document"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/transcript/sections"
)

// telling says how an event of each type gets into the timeline; others are
// shown as their data.
var telling = map[transcript.Type]func(*assembler, transcript.Event) error{
	transcript.TypeModelRequest:  decoded((*assembler).modelRequest),
	transcript.TypeModelResponse: decoded((*assembler).modelResponse),
	transcript.TypeToolStarted:   decoded((*assembler).toolStarted),
	transcript.TypeToolFinished:  decoded((*assembler).toolFinished),
	transcript.TypeRunStarted:    note("Run started", (*assembler).runStarted),
	transcript.TypeTask:          note("Task", (*assembler).task),
	transcript.TypeWorkspace:     note("Workspace", (*assembler).workspace),
	transcript.TypePolicy:        note("Confinement", (*assembler).policy),
	transcript.TypeSetup:         note("Setup", (*assembler).setup),
	transcript.TypeNetwork:       note("Network", (*assembler).network),
	transcript.TypeSecretUsed:    note("Credential", (*assembler).secretUsed),
	transcript.TypeService:       note("Service", (*assembler).service),
	transcript.TypeMCPServer:     note("Server of tools", (*assembler).mcpServer),
	transcript.TypeHooks:         note("Hooks", (*assembler).hooks),
	transcript.TypeHook:          note("Hook", (*assembler).hook),
	transcript.TypeSkills:        note("Skills", (*assembler).skills),
	transcript.TypeModelRetry:    note("Retry", (*assembler).retry),
	transcript.TypeModelFailure:  note("Failure of the model", (*assembler).modelFailure),
	transcript.TypeModelFallback: note("Another model", (*assembler).modelFallback),
	transcript.TypeCompaction:    note("Conversation made shorter", (*assembler).compaction),
	transcript.TypeAgentStarted:  note("Agent started", (*assembler).agentStarted),
	transcript.TypeAgentFinished: note("Agent ended", (*assembler).agentFinished),
	transcript.TypePlan:          note("Plan", (*assembler).plan),
	transcript.TypeVerify:        note("Verification", (*assembler).verify),
	transcript.TypeChange:        note("Change", (*assembler).change),
	transcript.TypePublish:       note("Published", (*assembler).publish),
	transcript.TypeMemory:        note("Memory", (*assembler).memory),
	transcript.TypeLesson:        note("Lesson proposed", (*assembler).lesson),
	transcript.TypeLessons:       note("Lessons", (*assembler).lessons),
	transcript.TypeWarning:       note("Warning", (*assembler).warning),
	transcript.TypeRunResumed:    note("Went on", (*assembler).runResumed),
	transcript.TypeRunFinished:   note("Run finished", (*assembler).runFinished),
}

// decoded has an event told with its data.
func decoded[T any](tell func(*assembler, transcript.Event, T)) func(*assembler, transcript.Event) error {
	return func(a *assembler, e transcript.Event) error {
		var data T
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		tell(a, e, data)
		return nil
	}
}

// note is an entry for one event, which fill completes from its data.
func note[T any](name string, fill func(*assembler, *entry, T)) func(*assembler, transcript.Event) error {
	return decoded(func(a *assembler, e transcript.Event, data T) { fill(a, a.enter(e, "note", name), data) })
}

func (a *assembler) runStarted(n *entry, d transcript.RunStarted) {
	a.scripted = d.Scripted != ""
	n.Topic = field("agent-ci " + d.Version)
}

func (a *assembler) runResumed(n *entry, d transcript.RunResumed) {
	n.Topic = field("after " + cmp.Or(d.After, "it was killed") + ", by agent-ci " + d.Version)
	a.part(n, "Limits from here on", strings.Join(d.Limits, "\n"))
	a.part(n, "Work tree from here on", d.WorkTree)
	var found []string
	if d.Torn > 0 {
		found = append(found, fmt.Sprintf("A last line of %s that was not whole was cut off the transcript.", transcript.Count(d.Torn, "byte")))
	}
	if d.Undone {
		found = append(found, "A patch that was half applied was taken back.")
	}
	if d.Elsewhere {
		found = append(found, "The work was put into the checkout again.")
	}
	a.part(n, "What was found", strings.Join(found, "\n"))
}

func (a *assembler) task(n *entry, d transcript.Task) {
	n.Topic = field(d.Title)
	a.part(n, "Text", d.Text)
}

func (a *assembler) workspace(n *entry, d transcript.Workspace) {
	n.Topic = field(strings.TrimSpace(d.Repository + " " + d.Base + " " + short(d.BaseSHA)))
}

func (a *assembler) policy(n *entry, d transcript.Policy) {
	n.Topic = field(d.Level)
	if len(d.Layers) > 0 {
		n.Topic = field(d.Level + " (" + strings.Join(d.Layers, ", ") + ")")
	}
	n.Bad = d.Unconfined()
	a.part(n, "Work tree", d.WorkTreeWords())
}

func (a *assembler) setup(n *entry, d transcript.Setup) {
	n.Topic, n.seconds, n.Bad = field(d.Name), d.Seconds, d.ExitCode != 0
	n.End = fmt.Sprintf("exit %d · %s", d.ExitCode, transcript.Duration(d.Seconds))
	a.part(n, "Command", d.Run)
	a.part(n, "Last lines", d.Tail)
}

func (a *assembler) network(n *entry, d transcript.Network) {
	n.Topic, n.Bad, n.End = field(d.Target), !d.Allowed, "allowed"
	if !d.Allowed {
		n.End, n.refused = "refused", cmp.Or(field(d.Rule), "no rule allows it")
	}
	a.part(n, "By", d.By+", "+d.Protocol)
	a.part(n, "Why", strings.TrimSpace(d.Rule+" "+d.Reason))
	if d.Request != "" {
		a.part(n, "First request", d.Request)
	}
	if d.Remedy != "" {
		a.part(n, "To let it through", d.Remedy)
	}
	if d.Via != "" {
		a.part(n, "By the proxy", d.Via)
	}
}

func (a *assembler) secretUsed(n *entry, d transcript.SecretUsed) {
	n.Topic, n.End = field(d.Name), "used"
	so := " so far"
	if d.Ended {
		so = ""
	}
	a.part(n, "By", d.By)
	a.part(n, "For", fmt.Sprintf("%s, %s%s", d.Target, transcript.Count(d.Uses, "request"), so))
}

func (a *assembler) service(n *entry, d transcript.Service) {
	n.Topic, n.seconds, n.Bad = field(d.Name), d.Seconds, d.State != transcript.ServiceReady
	n.End = strings.ReplaceAll(d.State, "_", " ") + " · " + transcript.Duration(d.Seconds)
	a.part(n, "For", fmt.Sprintf("%s, at port %d", d.By, d.Port))
	a.part(n, "At", d.At)
	a.part(n, "Why", d.Why)
}

func (a *assembler) mcpServer(n *entry, d transcript.MCPServer) {
	n.Topic, n.seconds = field(d.Name), d.Seconds
	n.Bad = d.State == transcript.MCPFailed || d.State == transcript.MCPEnded
	n.End = d.State + " · " + transcript.Duration(d.Seconds)
	a.part(n, "Program", d.Command)
	a.part(n, "Host", d.Host)
	a.part(n, "Calls itself", strings.TrimSpace(d.Server+" "+d.Version))
	a.part(n, "Protocol", d.Revision)
	a.part(n, "Why", d.Why)
	a.part(n, "Log", d.Log)
	var tools strings.Builder
	for _, tool := range d.Tools {
		fmt.Fprintf(&tools, "%s %s\n", tool.SHA256, tool.Name)
	}
	a.part(n, "Tools, by the SHA-256 of their schemas", strings.TrimSuffix(tools.String(), "\n"))
	a.part(n, "List", strings.TrimSpace(d.File+" "+d.SHA256))
}

func (a *assembler) skills(n *entry, d transcript.Skills) {
	n.Topic = transcript.Count(len(d.Skills), "skill")
	var list strings.Builder
	for _, s := range d.Skills {
		fmt.Fprintf(&list, "%s %s %s\n", s.SHA256, s.Name, s.Path)
	}
	a.part(n, "That can be loaded, by their SHA-256", list.String())
	a.part(n, "Texts", d.File+" "+d.SHA256)
}

func (a *assembler) retry(n *entry, d transcript.ModelRetry) {
	n.Bad = true
	n.Topic = field(fmt.Sprintf("turn %d, attempt %d", d.Turn, d.Attempt))
	n.End = "waits " + transcript.Duration(d.Wait)
	a.part(n, "Error", d.Error)
}

func (a *assembler) modelFailure(n *entry, d transcript.ModelFailure) {
	if a.scripted {
		n.Name = "Scripted session"
	}
	n.Bad = true
	n.Topic = field(strings.TrimSpace(d.Kind + " " + d.Code))
	n.End = "after " + transcript.Count(d.Attempts, "attempt")
	a.part(n, "Error", d.Error)
	a.part(n, "What came", d.Data)
}

func (a *assembler) modelFallback(n *entry, d transcript.ModelFallback) {
	n.Topic, n.Bad = field(d.To+" in the place of "+d.From), true
	a.part(n, "Why", d.Why)
	if len(d.LeftOut) > 0 {
		a.part(n, "Left out", transcript.Count(len(d.LeftOut), "item")+" of the conversation that it can't read")
	}
}

func (a *assembler) compaction(n *entry, d transcript.Compaction) {
	n.Topic = field("by " + d.Method + ", for " + d.Reason)
	if d.Reason == transcript.Refused {
		n.Name, n.Topic = field("Conversation repaired"), field("the API refused a part of it")
	}
	if d.Before > 0 && d.After > 0 {
		n.End = fmt.Sprintf("from %s to %s", transcript.Count(int(d.Before), "token"), transcript.Count(int(d.After), "token"))
	}
	var items strings.Builder
	for _, item := range d.Items {
		items.WriteString(indented(item) + "\n")
	}
	a.part(n, "The conversation from here on", items.String())
}

func (a *assembler) plan(n *entry, d transcript.Plan) {
	steps, done := sections.Steps(d), 0
	for _, step := range steps.Items {
		if step.Box == document.Done {
			done++
		}
	}
	n.Topic = fmt.Sprintf("%d of %s done", done, transcript.Count(len(d.Steps), "step"))
	a.part(n, "Why", d.Explanation)
	a.part(n, "Steps", document.Lines(steps))
}

func (a *assembler) verify(n *entry, d transcript.Verify) {
	n.Topic, n.End = fmt.Sprintf("attempt %d", d.Attempt), "passed"
	if d.Attempt == 0 {
		n.Topic, n.End = "before the change", ""
	} else if !d.Passed {
		n.End, n.Bad = "failed", true
	}
	var b strings.Builder
	for _, row := range d.Rows {
		now := row.After
		if d.Attempt == 0 {
			now = row.Before + row.Origin()
		}
		tests := row.Tests()
		if tests != "" {
			tests = ": " + tests
		}
		fmt.Fprintf(&b, "%s: %s (%s)%s\n", row.Name, transcript.Told(now, row.Runs), transcript.Duration(row.Seconds), tests)
		n.seconds += row.Took()
	}
	a.part(n, "Checks", b.String())
	for _, row := range d.Rows {
		a.part(n, "Last lines of "+field(row.Name), row.Tail)
	}
	source := &sections.Source{View: &transcript.View{Verify: &d}}
	for _, s := range source.On(sections.Proofs) {
		a.part(n, s.Title, document.Lines(s.Blocks...))
	}
}

func (a *assembler) change(n *entry, d transcript.Change) {
	n.Topic = fmt.Sprintf("%s, +%d −%d", transcript.Count(len(d.Files), "file"), d.Insertions, d.Deletions)
	var b strings.Builder
	for _, f := range d.Files {
		b.WriteString(f.Status + " " + markdown.FileName(f.Path) + "\n")
	}
	a.part(n, "Files", b.String())
}

func (a *assembler) publish(n *entry, d transcript.Publish) {
	parts := []string{strings.ReplaceAll(d.Step, "_", " ")}
	for _, p := range []string{d.Of, d.Operation, d.Branch, short(d.HeadSHA), d.URL} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	n.Topic = field(strings.Join(parts, " "))
}

func (a *assembler) agentStarted(n *entry, d transcript.AgentStarted) {
	n.Topic = field(fmt.Sprintf("%s (%s), asked by %s", d.Name, d.Role, d.AskedBy))
}

func (a *assembler) agentFinished(n *entry, d transcript.AgentFinished) {
	n.Topic, n.Bad = field(strings.TrimSpace(d.Status+" "+d.Reason)), d.Status == "errored"
	a.message(n, d.Text)
}

func (a *assembler) warning(n *entry, d transcript.Warning) {
	n.Topic, n.Bad = field(d.Code), true
	a.message(n, d.Message)
}

func (a *assembler) runFinished(n *entry, d transcript.RunFinished) {
	n.Topic = field(d.Outcome + "/" + d.Reason)
	n.End = transcript.Duration(d.Seconds)
	n.Bad = outcome.Outcome(d.Outcome).ExitCode() != 0
	a.message(n, d.Message)
}

// short is a commit's id as people write it.
func short(sha string) string { return transcript.ShortSHA(sha) }
