package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// Describe returns an event in words. For an unknown type, that is only the type's name. model.response has no
// words, because it is shown with its request.
func Describe(event transcript.Event) (e Entry) {
	switch d := event.Content.(type) {
	case transcript.RunStarted:
		scripted := withPrefix("; the model's answers are scripted (", d.Scripted)
		if scripted != "" {
			scripted += "), no model is asked"
		}
		e = line("**run %s**%s%s", d.RunID, withPrefix(" of ", d.Key), scripted).withTexts()
	case transcript.RunResumed:
		e = detail("**resumed** after %s, by agent-ci %s", cmp.Or(d.PreviousEnd, "it was killed"), d.Version)
		if d.TornBytes > 0 {
			e.add("; " + transcript.CountNoun(d.TornBytes, "byte") + " of a torn last line were cut off")
		}
		if d.PatchUndone {
			e.add("; a half-applied patch was undone")
		}
		if d.RestoredElsewhere {
			e.add("; the work was put into the checkout again")
		}
	case transcript.RunFinished:
		e = detail("**run finished**: %s/%s after %s", d.Outcome, d.Reason, transcript.FormatSeconds(d.Seconds)).badIf(outcome.Outcome(d.Outcome).ExitCode() != 0).withTexts()
		e.Message = d.Message
	case transcript.Task:
		e = detail("**task**%s", withPrefix(": ", d.Title)).withTexts(LongText{"Text", d.Text})
	case transcript.Workspace:
		e = line("**base** is %s", strings.TrimSpace(d.Base+" "+clip.SHA(d.BaseSHA))).withTexts()
	case transcript.Policy:
		if len(d.Layers) == 0 {
			return line("**WARNING**: commands run unconfined, with all rights of this user").bad()
		}
		e = line("**commands are confined**%s%s", fmt.Sprintf(": %s (%s)", d.Level, strings.Join(d.Layers, ", ")), withPrefix("; work tree: ", d.DescribeWorkTree())).badIf(d.Unconfined())
	case transcript.Setup:
		name := strings.TrimPrefix(cmp.Or(d.Kind, "setup")+" "+d.Name, d.Name+" ")
		e = line("**%s**: exit %d after %s", name, d.ExitCode, formatSeconds(d.Seconds)).badIf(d.ExitCode != 0)
		e.addOutput("setup "+d.Name, fmt.Sprintf("exit %d", d.ExitCode), d.Tail)
	case transcript.HostRequest:
		if d.Allowed {
			return detail("**allowed** to reach %s", d.Target)
		}
		e = neighbour("**refused** to reach %s%s", d.Target, withPrefix(": ", d.Reason)).bad()
		e.Host, e.RefusedBy = d.Target, cmp.Or(d.Rule, "no rule allows it")
		if d.Request != "" {
			e.add(" The request was " + d.Request + ".")
		}
		if d.Remedy != "" {
			e.add(" To let it through, " + d.Remedy + ".")
		}
	case transcript.SecretUsed:
		if d.Uses == 1 && !d.Ended {
			return neighbour("**secret %s** is used by %s for %s", d.Name, d.Sandbox, d.Target)
		}
		e = neighbour("**secret %s** was used %d times by %s for %s", d.Name, d.Uses, d.Sandbox, d.Target)
		e.Detail = d.Uses == 1 || !d.Ended
	case transcript.Service:
		if d.State == transcript.ServiceReady {
			return neighbour("**service %s** is ready for %s after %s", d.Name, d.Sandbox, formatSeconds(d.Seconds))
		}
		e = neighbour("**service %s** for %s: %s", d.Name, d.Sandbox, d.Reason).bad()
	case transcript.MCPServer:
		if d.State == transcript.MCPReady && d.Reason == "" {
			return neighbour("**server %s** is ready after %s with %s", d.Name, formatSeconds(d.Seconds), transcript.CountNoun(len(d.Tools), "tool"))
		}
		e = neighbour("**server %s** is %s: %s", d.Name, d.State, d.Reason).badIf(d.State == transcript.MCPFailed || d.State == transcript.MCPEnded)
	case transcript.Hooks:
		e = detail("**hooks**: %s", transcript.CountNoun(len(d.Hooks), "hook"))
	case transcript.HookAnswer:
		e = neighbour("**hook %s** on %s %s%s", d.Name, d.Event, cmp.Or(hookVerbs[d.Decision], d.Decision), withPrefix(": ", d.Reason))
		e.Detail, e.Bad = hookVerbs[d.Decision] == "", d.Decision == transcript.HookDeny || d.Decision == transcript.HookFailed
	case transcript.Skills:
		e = detail("**skills**: %s can be loaded", transcript.CountNoun(len(d.Skills), "skill"))
	case transcript.Memory:
		e = detail("**memory**: %s of %s, %d chosen", transcript.CountNoun(len(d.Lessons), "lesson"), d.File, len(d.ChosenIDs))
		e = e.withTexts(LongText{"Lessons", listLessons(d.Lessons)}, LongText{"Chosen for the task", strings.Join(d.ChosenIDs, "\n")})
	case transcript.Lesson:
		e = line("**lesson proposed**: %s", d.Claim)
	case transcript.Lessons:
		e = detail("**lessons**: %s in %s", transcript.CountNoun(len(d.Lessons), "lesson"), d.File).withTexts(LongText{"Lessons", listLessons(d.Lessons)})
	case transcript.ModelRequest:
		e = line("**turn %d**", d.Turn)
	case transcript.ModelRetry:
		e = line("**attempt %d** failed (%s), again in %s", d.Attempt, d.Error, formatSeconds(d.Wait)).bad()
	case transcript.ModelFailure:
		e = detail("**request failed** after %s: %s", transcript.CountNoun(d.Attempts, "attempt"), strings.TrimSpace(d.Kind+" "+d.Code)).bad()
	case transcript.ModelFallback:
		e = line("**continues with %s** instead of %s: %s", d.To, d.From, d.Message).bad()
	case transcript.Compaction:
		e = detail("**conversation shortened** by %s, for %s", d.Method, d.Reason)
		if d.Reason == transcript.RefusedItems {
			e = detail("**conversation repaired**: the API refused a part of it")
		}
		if d.TokensBefore > 0 && d.TokensAfter > 0 {
			e.add(fmt.Sprintf(": from %s to %s", transcript.CountNoun(int(d.TokensBefore), "token"), transcript.CountNoun(int(d.TokensAfter), "token")))
		}
		var items bytes.Buffer
		for _, item := range d.Items {
			if json.Indent(&items, item, "", "  ") == nil {
				items.WriteByte('\n')
			}
		}
		e = e.withTexts(LongText{"The conversation from here on", items.String()})
	case transcript.AgentStarted:
		e = line("**agent %s** (%s) was started by %s", d.Name, d.Role, d.StartedBy)
	case transcript.AgentFinished:
		e = line("**has ended**: %s%s", d.Status, inBrackets(d.Reason)).badIf(d.Status == "errored")
	case transcript.ToolStarted:
		e = neighbour("**%s%s**%s", scriptIndent(d.Ref()), d.Tool, withPrefix(" ", d.Topic()))
	case transcript.ToolFinished:
		e = neighbour("**%s%s** failed after %s", scriptIndent(d.Ref()), d.Tool, formatSeconds(d.Seconds))
		e.Detail = !d.Failed
	case transcript.Plan:
		e = describePlan(d)
	case transcript.Change:
		e = detail("**change**: %s", d.DescribeSize())
		var files strings.Builder
		for _, f := range d.Files {
			files.WriteString(string(f.Status) + " " + markdown.FileName(f.Path) + "\n")
		}
		e = e.withTexts(LongText{"Files", files.String()})
	case transcript.Verify:
		e = describeVerify(d)
	case transcript.Inspection:
		e = describeInspection(d)
	case transcript.Publish:
		e = describePublish(d)
	case transcript.Warning:
		text := append(document.Format("**warning**"), document.Span{Text: " " + d.Code, PageOnly: true})
		e = Entry{Line: text, Message: d.Message}.bad().withTexts()
	default:
		e = detail("**%s**", string(event.Type))
	}
	return e
}

// hookVerbs describes the decisions of hooks that are worth a line.
var hookVerbs = map[string]string{
	transcript.HookDeny: "refuses", transcript.HookFailed: "failed", transcript.HookMore: "wants more work",
	transcript.HookRewrite: "rewrites", transcript.HookReplace: "replaces the output",
}

// scriptIndent returns the indentation of a call by a script, and "" for a call by the model.
func scriptIndent(call transcript.CallRef) string {
	if call.Caller > 0 {
		return "  "
	}
	return ""
}

// listLessons returns lessons with their evidence, two lines each.
func listLessons(all []transcript.Lesson) string {
	var s strings.Builder
	for _, l := range all {
		s.WriteString(l.ID + ": " + l.Claim + "\n  " + strings.Join(l.Evidence, ", ") + "\n")
	}
	return s.String()
}

// describePlan describes a plan: how many steps are done, and the current step.
func describePlan(d transcript.Plan) Entry {
	e := neighbour("**plan**: %d of %d done", d.CompletedCount(), len(d.Steps))
	if index, inProgress := d.CurrentStep(); inProgress {
		e.add(", now: " + d.Steps[index].Step)
	} else if index >= 0 {
		e.add(", next: " + d.Steps[index].Step)
	}
	return e.withTexts(LongText{"Why", d.Explanation}, LongText{"Steps", document.PlainText(sections.Steps(d))})
}

// describeVerify describes a verification table: a row for each check, the last lines of failed checks, and
// the proofs.
func describeVerify(d transcript.Verify) Entry {
	e := line("**verified**: ").badIf(d.Attempt > 0 && !d.Passed)
	if d.Attempt == 0 {
		e.Line[0].Text = "before the change"
	}
	var rows []string
	checks := ""
	for _, row := range d.Rows {
		before, after := cmp.Or(row.Before, "not run"), cmp.Or(row.After, "not run")
		summary := row.Name + " " + before + " → " + after
		state, result := row.After, row.After
		if d.Attempt == 0 {
			summary = row.Name + " is " + before + row.DescribeOrigin()
			state, result = row.Before+row.DescribeOrigin(), row.Before+" before the change"
		}
		rows = append(rows, summary+inBrackets(row.DescribeTests()))
		checks += fmt.Sprintf("%s: %s (%s)%s\n", row.Name, transcript.StateWithRuns(state, row.Runs), transcript.FormatSeconds(row.Seconds), withPrefix(": ", row.DescribeTests()))
		e.addOutput(row.Name, result, row.Tail)
		e.Seconds += row.TotalSeconds()
	}
	e.add(strings.Join(rows, ", "))
	e = e.withTexts(LongText{"Checks", checks})
	if d.Attempt == 0 {
		return e
	}
	e.add(describeProofs(d))
	return e.withSections(transcript.ChangeState{Verify: &d}, sections.Proofs)
}

// describeProofs returns words about the classes of the change's test files, and about tests of the base
// that are deleted or failing.
func describeProofs(d transcript.Verify) (words string) {
	var all []string
	for _, p := range d.BestProofs() {
		all = append(all, p.File+" "+p.Class)
	}
	words = withPrefix("; red proof: ", clip.List(all, 10))
	old, scripts := d.CountBrokenOldTests()
	if old > 0 {
		words += "; " + transcript.CountNoun(old, "test") + " of the base deleted or failing"
	}
	if scripts > 0 {
		words += "; " + transcript.CountNoun(scripts, "file") + " of the checks changed to pass"
	}
	return words
}

// describePublish describes a publishing step.
func describePublish(d transcript.Publish) Entry {
	switch d.Step {
	case "commit":
		return line("**committed** %s on %s", clip.SHA(d.HeadSHA), d.Branch)
	case "push":
		return line("**pushed** %s to %s", d.Branch, d.Remote)
	case "pull_request":
		return line("**pull request**%s %s: %s", withPrefix(" of ", d.About), d.Operation, d.URL)
	}
	return line("**%s** on #%d %s: %s", d.Step, d.Number, d.Operation, d.URL)
}

// describeInspection describes the findings in a change.
func describeInspection(d transcript.Inspection) Entry {
	var found []string
	if n := len(d.SilencedSigns) + d.MoreSilencedSigns; n > 0 {
		found = append(found, transcript.CountNoun(n, "sign")+" of silenced checks")
	}
	if n := len(d.WorkflowStarts); n > 0 {
		found = append(found, transcript.CountNoun(n, "job")+" of workflows run files of the change")
	}
	if n := len(d.Claims); n > 0 {
		found = append(found, transcript.CountNoun(n, "claim")+" of the summary not found in the change")
	}
	e := line("**inspected**: %s", cmp.Or(strings.Join(found, ", "), "nothing is left of what was found")).badIf(!d.Empty())
	e.Detail = d.Empty()
	return e.withSections(transcript.ChangeState{Inspection: d}, sections.Findings)
}
