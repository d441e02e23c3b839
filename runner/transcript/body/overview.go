package body

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// fieldWidth is the most that one field of a list or table takes, in UTF-16
// units before escaping.
const fieldWidth = 300

// remarkWidth is the same for a note and for why a pull request is a draft.
const remarkWidth = 1000

// account is what came of a run, beside the agent's own words.
func account(v *transcript.View, own Own, draft, more []string) []section {
	all := []section{banner(v, own, draft)}
	if begun(v) {
		all = append(all, plan(v.Plan), verification(v.Verify))
	}
	all = append(append(all, failures(v)...), redProof(v.Verify), oldTests(v.Verify))
	if begun(v) && own.files {
		all = append(all, files(v.Change))
	}
	if begun(v) {
		all = append(all, lessons(v.Lessons))
	}
	return append(all, secrets(v.Secrets), servers(v.MCPServers), jobsTools(v), skills(v.LoadedSkills), hooks(v.Hooks), warnings(v.Warnings), facts(v, own, more))
}

// begun says whether the agent came to work: of a run that ended before that, what it
// did not do is nothing to tell.
func begun(v *transcript.View) bool {
	return v.Finished == nil || v.Turns > 0 || v.Calls > 0 || v.Change != nil && len(v.Change.Files) > 0
}

func text(s string) string   { return markdown.Text(markdown.Cut(s, fieldWidth)) }
func remark(s string) string { return markdown.Text(markdown.Cut(s, remarkWidth)) }
func code(s string) string   { return markdown.Code(markdown.Cut(s, fieldWidth)) }
func cell(s string) string   { return markdown.CellCode(markdown.Cut(s, fieldWidth)) }

func scripted(v *transcript.View) section {
	if v.Started.Scripted == "" {
		return section{}
	}
	return section{
		head: "\n> [!NOTE]\n",
		rows: []string{fmt.Sprintf("> This run was scripted: the answers come from the session file %s, no model was asked.\n",
			code(v.Started.Scripted))},
	}
}

func summary(v *transcript.View) section {
	rows := markdown.Prose(v.Summary())
	if len(rows) == 0 && begun(v) {
		rows = []string{"The agent left no summary.\n"}
	}
	return section{head: "\n", rows: rows, share: 12_000, more: "paragraph"}
}

func notes(all []string) section {
	rows := rowsOf(all, func(note string) string { return "> - " + remark(note) + "\n" })
	return section{head: "\n> [!NOTE]\n", rows: rows, share: 4_000, more: "note"}
}

func banner(v *transcript.View, own Own, draft []string) section {
	rows := rowsOf(reasons(v, own, draft), func(reason string) string { return "> - " + reason + "\n" })
	return section{head: "\n> [!WARNING]\n", rows: rows, share: 4_000, more: "reason"}
}

// reasons are what is not well with a run, as Markdown.
func reasons(v *transcript.View, own Own, draft []string) []string {
	var all []string
	if f := v.Finished; f != nil && !own.told && outcome.Outcome(f.Outcome).ExitCode() != 0 {
		all = append(all, fmt.Sprintf("The run ended as %s: %s", code(f.Outcome+"/"+f.Reason), own.Sentence(markdown.Cut(f.Message, remarkWidth))))
	}
	for _, reason := range draft {
		all = append(all, "Draft: "+remark(reason))
	}
	if red := redChecks(v); red != "" && !(own.told && v.Finished.Outcome == string(outcome.VerifyFailed)) {
		all = append(all, red)
	}
	if v.Policy.Unconfined() {
		all = append(all, "Commands ran unconfined, with all rights of the user who started agent-ci.")
	}
	if v.Torn {
		all = append(all, "The transcript's last line is torn: the run was killed, or its disk was full.")
	}
	return all
}

func redChecks(v *transcript.View) string {
	switch {
	case v.Verify == nil || len(v.Verify.Rows) == 0:
		return ""
	case v.Verify.Attempt == 0 && (v.Change == nil || len(v.Change.Files) == 0):
		return ""
	case v.Verify.Attempt == 0:
		return "The checks did not run on the change."
	case v.Verify.Passed:
		return ""
	}
	var names []string
	for _, row := range v.Verify.Rows {
		if !row.Passed {
			names = append(names, text(row.Name))
		}
	}
	return "Failed checks: " + strings.Join(names, ", ")
}

func plan(p transcript.Plan) section {
	rows := rowsOf(p.Steps, planStep)
	if len(rows) == 0 {
		rows = []string{"The agent made no plan.\n"}
	}
	return section{head: "\n## Plan\n\n", rows: rows, most: 50, share: 6_000, more: "step"}
}

func planStep(step transcript.PlanStep) string {
	switch step.Status {
	case "completed":
		return "- [x] " + text(step.Step) + "\n"
	case "in_progress":
		return "- [ ] " + text(step.Step) + " *(in progress)*\n"
	}
	return "- [ ] " + text(step.Step) + "\n"
}

func verification(v *transcript.Verify) section {
	if v == nil || len(v.Rows) == 0 {
		return section{head: "\n## Verification\n\n", rows: []string{"No check ran: nothing shows that the change works.\n"}}
	}
	return section{
		head: "\n## Verification\n\n| Check | Result | Before | After | Time | Command |\n|---|---|---|---|--:|---|\n",
		rows: rowsOf(v.Rows, checkRow), most: 50, share: 6_000, more: "check",
	}
}

func checkRow(row transcript.VerifyRow) string {
	result := signed(row.Result())
	if row.Result() == transcript.CheckFailed {
		result = bad + "**" + row.Result() + "**"
	}
	if tests := row.TestsAfter(); tests != "" {
		result += ": " + tests
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", text(row.Name), result,
		cmp.Or(text(row.Before+row.Origin()), "–"), cmp.Or(text(toldAfter(row)), "–"), transcript.Duration(row.Seconds), cell(row.Run))
}

// toldAfter is how a check came out after the change, with the runs that differed.
func toldAfter(row transcript.VerifyRow) string {
	if row.After != transcript.Flaky {
		return row.After
	}
	return transcript.Told(row.After, row.Runs)
}

func files(c *transcript.Change) section {
	if c == nil || len(c.Files) == 0 {
		return section{head: "\n## Files\n\n", rows: []string{"No file was changed.\n"}}
	}
	return section{
		head: "\n## Files\n\n" + c.Size() + "\n\n| | File | + | − |\n|---|---|--:|--:|\n",
		rows: rowsOf(c.Files, fileRow), most: 50, share: 8_000, more: "file",
	}
}

func fileRow(f transcript.ChangeFile) string {
	added, removed := transcript.Thousands(int64(f.Insertions)), transcript.Thousands(int64(f.Deletions))
	if f.Binary {
		added, removed = "binary", ""
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", text(f.Status), cell(markdown.FileName(f.Path)), added, removed)
}

func warnings(all []transcript.Warning) section {
	rows := rowsOf(all, func(w transcript.Warning) string { return fmt.Sprintf("- %s (%s)\n", text(w.Message), code(w.Code)) })
	return section{head: "\n## Warnings\n\n", rows: rows, most: 50, share: 4_000, more: "warning"}
}

// facts tells what the run took and under which rules.
func facts(v *transcript.View, own Own, more []string) section {
	s := section{head: "\n## Run\n\n", share: 4_000, more: "fact"}
	add := func(format string, args ...any) { s.rows = append(s.rows, "- "+fmt.Sprintf(format, args...)+"\n") }
	add("Work: %s", work(v))
	add("Tokens: %s", tokens(v.Usage))
	if cost, known := transcript.CostOf(v.AllModels()); known {
		add("Cost: $%.4f", cost)
	}
	for _, a := range v.Agents {
		add("Agent %s", agent(v, a))
	}
	for _, fallback := range v.Fallbacks {
		add("Model: %s, in the place of %s since turn %d (%s)", text(fallback.To), text(fallback.From), fallback.Turn, text(fallback.Reason))
	}
	if v.Policy.Level != "" {
		add("Confinement: %s", confinement(v.Policy))
	}
	if v.Task.Issue != "" {
		add("Task: %s", own.issue(v.Task.Issue))
	}
	if v.Workspace.BaseSHA != "" {
		add("Base: %s", strings.TrimSpace(text(v.Workspace.Base)+" "+own.commit(v.Workspace.BaseSHA)))
	}
	if v.Started.RunID != "" {
		add("agent-ci %s, run %s", text(v.Started.Version), own.run(v.Started.RunID, v.Started.Link))
	}
	for _, fact := range more {
		add("%s", remark(fact))
	}
	return s
}

// agent is an agent that another one started: who asked it, how it stands, what it took.
func agent(v *transcript.View, a *transcript.Agent) string {
	return text(a.Words(v))
}

func work(v *transcript.View) string {
	parts := []string{transcript.Count(v.Turns, "turn"), transcript.Count(v.Calls, "tool call")}
	switch {
	case v.Started.Scripted != "":
		parts = append([]string{"scripted answers"}, parts...)
	case v.Model != "":
		parts = append([]string{text(v.Model)}, parts...)
	}
	if v.Retries > 0 {
		parts = append(parts, transcript.Count(v.Retries, "repeated request"))
	}
	if v.Compactions > 0 {
		parts = append(parts, transcript.Count(v.Compactions, "compaction"))
	}
	if v.Finished != nil {
		parts = append(parts, transcript.Duration(v.Finished.Seconds))
	}
	return strings.Join(parts, ", ")
}

func tokens(u transcript.Usage) string {
	return fmt.Sprintf("%s in (%s cached), %s out (%s reasoning)",
		transcript.Thousands(u.Input), transcript.Thousands(u.Cached), transcript.Thousands(u.Output), transcript.Thousands(u.Reasoning))
}

// confinement is how commands were held, in a line; the report has the layers.
func confinement(p transcript.Policy) string {
	words := fmt.Sprintf("%s; sandbox %s, network %s", text(p.Level), text(p.Sandbox), text(p.Network))
	if tree := p.WorkTreeWords(); tree != "" {
		words += ", work tree " + text(tree)
	}
	return words
}
