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

// describers describes each event type except model.response, which is shown with its request.
var describers = map[transcript.Type]func(json.RawMessage) (Entry, error){
	transcript.TypeRunStarted: decodeAs(func(d transcript.RunStarted) Entry {
		scripted := withPrefix("; the model's answers are scripted (", d.Scripted)
		if scripted != "" {
			scripted += "), no model is asked"
		}
		return Entry{Line: sentence("run "+d.RunID, withPrefix(" of ", d.Key), scripted), Texts: withoutTexts}
	}),
	transcript.TypeRunResumed: decodeAs(func(d transcript.RunResumed) Entry {
		e := detailEntry("resumed", " after "+cmp.Or(d.PreviousEnd, "it was killed")+", by agent-ci "+d.Version)
		if d.TornBytes > 0 {
			e.Line = append(e.Line, document.Span{Text: "; " + transcript.CountNoun(d.TornBytes, "byte") + " of a torn last line were cut off"})
		}
		if d.PatchUndone {
			e.Line = append(e.Line, document.Span{Text: "; a half-applied patch was undone"})
		}
		if d.RestoredElsewhere {
			e.Line = append(e.Line, document.Span{Text: "; the work was put into the checkout again"})
		}
		return e
	}),
	transcript.TypeRunFinished: decodeAs(func(d transcript.RunFinished) Entry {
		e := detailEntry("run finished", ": "+d.Outcome+"/"+d.Reason+" after "+transcript.FormatSeconds(d.Seconds))
		e.Message, e.Bad, e.Texts = d.Message, outcome.Outcome(d.Outcome).ExitCode() != 0, withoutTexts
		return e
	}),
	transcript.TypeTask: decodeAs(func(d transcript.Task) Entry {
		e := detailEntry("task", withPrefix(": ", d.Title))
		e.Texts = []LongText{{"Text", d.Text}}
		return e
	}),
	transcript.TypeWorkspace: decodeAs(func(d transcript.Workspace) Entry {
		return Entry{Line: sentence("base", " is "+strings.TrimSpace(d.Base+" "+transcript.ShortSHA(d.BaseSHA))), Texts: withoutTexts}
	}),
	transcript.TypePolicy: decodeAs(func(d transcript.Policy) Entry {
		if len(d.Layers) == 0 {
			return Entry{Line: sentence("WARNING", ": commands run unconfined, with all rights of this user"), Bad: true}
		}
		return Entry{Line: sentence("commands are confined", fmt.Sprintf(": %s (%s)", d.Level, strings.Join(d.Layers, ", ")), withPrefix("; work tree: ", d.DescribeWorkTree())), Bad: d.Unconfined()}
	}),
	transcript.TypeSetup: decodeAs(func(d transcript.Setup) Entry {
		name := strings.TrimPrefix(cmp.Or(d.Kind, "setup")+" "+d.Name, d.Name+" ")
		return Entry{Line: sentence(name, fmt.Sprintf(": exit %d after %s", d.ExitCode, formatSeconds(d.Seconds))), Bad: d.ExitCode != 0, Outputs: outputsOf("setup "+d.Name, fmt.Sprintf("exit %d", d.ExitCode), d.Tail)}
	}),
	transcript.TypeNetwork: decodeAs(func(d transcript.HostRequest) Entry {
		if d.Allowed {
			return detailEntry("allowed", " to reach ", d.Target)
		}
		e := Entry{Line: sentence("refused", " to reach ", d.Target, withPrefix(": ", d.Reason)), PartOfNeighbours: true, Bad: true, Host: d.Target, RefusedBy: cmp.Or(d.Rule, "no rule allows it")}
		if d.Request != "" {
			e.Line = append(e.Line, document.Span{Text: " The request was " + d.Request + "."})
		}
		if d.Remedy != "" {
			e.Line = append(e.Line, document.Span{Text: " To let it through, " + d.Remedy + "."})
		}
		return e
	}),
	transcript.TypeSecretUsed: decodeAs(func(d transcript.SecretUsed) Entry {
		e := Entry{Line: sentence("secret "+d.Name, fmt.Sprintf(" was used %d times by %s for ", d.Uses, d.Sandbox), d.Target), PartOfNeighbours: true, Detail: d.Uses == 1 || !d.Ended}
		if d.Uses == 1 && !d.Ended {
			e.Line, e.Detail = sentence("secret "+d.Name, " is used by "+d.Sandbox+" for ", d.Target), false
		}
		return e
	}),
	transcript.TypeService: decodeAs(func(d transcript.Service) Entry {
		if d.State == transcript.ServiceReady {
			return Entry{Line: sentence("service "+d.Name, " is ready for "+d.Sandbox+" after "+formatSeconds(d.Seconds)), PartOfNeighbours: true}
		}
		return Entry{Line: sentence("service "+d.Name, " for "+d.Sandbox+": ", d.Reason), PartOfNeighbours: true, Bad: true}
	}),
	transcript.TypeMCPServer: decodeAs(func(d transcript.MCPServer) Entry {
		if d.State == transcript.MCPReady && d.Reason == "" {
			return Entry{Line: sentence("server "+d.Name, " is ready after "+formatSeconds(d.Seconds)+" with "+transcript.CountNoun(len(d.Tools), "tool")), PartOfNeighbours: true}
		}
		return Entry{Line: sentence("server "+d.Name, " is "+d.State+": ", d.Reason), PartOfNeighbours: true, Bad: d.State == transcript.MCPFailed || d.State == transcript.MCPEnded}
	}),
	transcript.TypeHooks: decodeAs(func(d transcript.Hooks) Entry {
		return detailEntry("hooks", ": "+transcript.CountNoun(len(d.Hooks), "hook"))
	}),
	transcript.TypeHook: decodeAs(func(d transcript.HookAnswer) Entry {
		e := Entry{Line: sentence("hook "+d.Name, " on "+d.Event+" "+cmp.Or(hookVerbs[d.Decision], d.Decision), withPrefix(": ", d.Reason)), PartOfNeighbours: true}
		e.Detail, e.Bad = hookVerbs[d.Decision] == "", d.Decision == transcript.HookDeny || d.Decision == transcript.HookFailed
		return e
	}),
	transcript.TypeSkills: decodeAs(func(d transcript.Skills) Entry {
		return detailEntry("skills", ": "+transcript.CountNoun(len(d.Skills), "skill")+" can be loaded")
	}),
	transcript.TypeMemory: decodeAs(func(d transcript.Memory) Entry {
		e := detailEntry("memory", fmt.Sprintf(": %s of %s, %d chosen", transcript.CountNoun(len(d.Lessons), "lesson"), d.File, len(d.ChosenIDs)))
		e.Texts = []LongText{{"Lessons", listLessons(d.Lessons)}, {"Chosen for the task", strings.Join(d.ChosenIDs, "\n")}}
		return e
	}),
	transcript.TypeLesson: decodeAs(func(d transcript.Lesson) Entry { return Entry{Line: sentence("lesson proposed", ": "+d.Claim)} }),
	transcript.TypeLessons: decodeAs(func(d transcript.Lessons) Entry {
		e := detailEntry("lessons", fmt.Sprintf(": %s in %s", transcript.CountNoun(len(d.Lessons), "lesson"), d.File))
		e.Texts = []LongText{{"Lessons", listLessons(d.Lessons)}}
		return e
	}),
	transcript.TypeModelRequest: decodeAs(func(d transcript.ModelRequest) Entry { return Entry{Line: sentence(fmt.Sprintf("turn %d", d.Turn))} }),
	transcript.TypeModelRetry: decodeAs(func(d transcript.ModelRetry) Entry {
		return Entry{Line: sentence(fmt.Sprintf("attempt %d", d.Attempt), " failed ("+d.Error+"), again in "+formatSeconds(d.Wait)), Bad: true}
	}),
	transcript.TypeModelFailure: decodeAs(func(d transcript.ModelFailure) Entry {
		e := detailEntry("request failed", " after "+transcript.CountNoun(d.Attempts, "attempt"), ": "+strings.TrimSpace(d.Kind+" "+d.Code))
		e.Bad = true
		return e
	}),
	transcript.TypeModelFallback: decodeAs(func(d transcript.ModelFallback) Entry {
		return Entry{Line: sentence("continues with "+d.To, " instead of "+d.From+": ", d.Message), Bad: true}
	}),
	transcript.TypeCompaction: decodeAs(func(d transcript.Compaction) Entry {
		e := detailEntry("conversation shortened", " by "+d.Method+", for "+d.Reason)
		if d.Reason == transcript.RefusedItems {
			e = detailEntry("conversation repaired", ": the API refused a part of it")
		}
		if d.TokensBefore > 0 && d.TokensAfter > 0 {
			e.Line = append(e.Line, document.Span{Text: fmt.Sprintf(": from %s to %s", transcript.CountNoun(int(d.TokensBefore), "token"), transcript.CountNoun(int(d.TokensAfter), "token"))})
		}
		var items bytes.Buffer
		for _, item := range d.Items {
			if json.Indent(&items, item, "", "  ") == nil {
				items.WriteByte('\n')
			}
		}
		e.Texts = []LongText{{"The conversation from here on", items.String()}}
		return e
	}),
	transcript.TypeAgentStarted: decodeAs(func(d transcript.AgentStarted) Entry {
		return Entry{Line: sentence("agent "+d.Name, " ("+d.Role+") was started by "+d.StartedBy)}
	}),
	transcript.TypeAgentFinished: decodeAs(func(d transcript.AgentFinished) Entry {
		return Entry{Line: sentence("has ended", ": "+d.Status+inBrackets(d.Reason)), Bad: d.Status == "errored"}
	}),
	transcript.TypeToolStarted: decodeAs(func(d transcript.ToolStarted) Entry {
		return Entry{Line: sentence(scriptIndent(d.Ref())+d.Tool, withPrefix(" ", transcript.Topic(d.ReadableInput()))), PartOfNeighbours: true}
	}),
	transcript.TypeToolFinished: decodeAs(func(d transcript.ToolFinished) Entry {
		return Entry{Line: sentence(scriptIndent(d.Ref())+d.Tool, " failed after "+formatSeconds(d.Seconds)), PartOfNeighbours: true, Detail: !d.Failed}
	}),
	transcript.TypePlan: decodeAs(describePlan),
	transcript.TypeChange: decodeAs(func(d transcript.Change) Entry {
		e := detailEntry("change", ": "+d.DescribeSize())
		var files strings.Builder
		for _, f := range d.Files {
			files.WriteString(string(f.Status) + " " + markdown.FileName(f.Path) + "\n")
		}
		e.Texts = []LongText{{"Files", files.String()}}
		return e
	}),
	transcript.TypeVerify:     decodeAs(describeVerify),
	transcript.TypeInspection: decodeAs(describeInspection),
	transcript.TypePublish:    decodeAs(describePublish),
	transcript.TypeWarning: decodeAs(func(d transcript.Warning) Entry {
		text := append(sentence("warning"), document.Span{Text: " " + d.Code, PageOnly: true})
		return Entry{Line: text, Message: d.Message, Bad: true, Texts: withoutTexts}
	}),
}

// hookVerbs describes the decisions of hooks that are worth a line.
var hookVerbs = map[string]string{
	transcript.HookDeny: "refuses", transcript.HookFailed: "failed", transcript.HookMore: "wants more work",
	transcript.HookRewrite: "rewrites", transcript.HookReplace: "replaces the output",
}

// scriptIndent returns the indentation of a call: calls of scripts are indented.
func scriptIndent(call transcript.CallRef) string {
	if call.Caller > 0 {
		return "  "
	}
	return ""
}

func listLessons(all []transcript.Lesson) string {
	var s strings.Builder
	for _, l := range all {
		s.WriteString(l.ID + ": " + l.Claim + "\n  " + strings.Join(l.Evidence, ", ") + "\n")
	}
	return s.String()
}

// describePlan describes a plan: how many steps are done, and the current step.
func describePlan(d transcript.Plan) Entry {
	e := Entry{Line: sentence("plan", fmt.Sprintf(": %d of %d done", d.DoneSteps(), len(d.Steps))), PartOfNeighbours: true}
	if index, inProgress := d.CurrentStep(); inProgress {
		e.Line = append(e.Line, document.Span{Text: ", now: " + d.Steps[index].Step})
	} else if index >= 0 {
		e.Line = append(e.Line, document.Span{Text: ", next: " + d.Steps[index].Step})
	}
	e.Texts = []LongText{{"Why", d.Explanation}, {"Steps", document.PlainText(sections.Steps(d))}}
	return e
}

// describeVerify describes a verification table: a row for each check, the last lines of failed checks, and
// the proofs.
func describeVerify(d transcript.Verify) Entry {
	e := Entry{Line: sentence("verified", ": "), Bad: d.Attempt > 0 && !d.Passed}
	if d.Attempt == 0 {
		e.Line[0].Text = "before the change"
	}
	var rows []string
	checks := ""
	for _, row := range d.Rows {
		before := cmp.Or(row.Before, "not run")
		words, now, end := row.Name+" is "+before+row.DescribeOrigin(), row.Before+row.DescribeOrigin(), row.Before+" before the change"
		if d.Attempt > 0 {
			words, now, end = row.Name+" "+before+" → "+cmp.Or(row.After, "not run"), row.After, row.After
		}
		rows = append(rows, words+inBrackets(row.DescribeTests()))
		checks += fmt.Sprintf("%s: %s (%s)%s\n", row.Name, transcript.StateWithRuns(now, row.Runs), transcript.FormatSeconds(row.Seconds), withPrefix(": ", row.DescribeTests()))
		e.Outputs = append(e.Outputs, outputsOf(row.Name, end, row.Tail)...)
		e.Seconds += row.TotalSeconds()
	}
	e.Line = append(e.Line, document.Span{Text: strings.Join(rows, ", ")})
	e.Texts = []LongText{{"Checks", checks}}
	if d.Attempt == 0 {
		return e
	}
	e.Line = append(e.Line, document.Span{Text: describeProofs(d)})
	for _, s := range (&sections.Source{View: &transcript.View{ChangeState: transcript.ChangeState{Verify: &d}}}).ForPages(sections.Proofs) {
		e.Texts = append(e.Texts, LongText{s.Title, document.PlainText(s.Blocks...)})
	}
	return e
}

// describeProofs returns words about the classes of the change's test files, and about tests of the base
// that are deleted or failing.
func describeProofs(d transcript.Verify) (words string) {
	var all []string
	for _, p := range d.BestProofs() {
		all = append(all, p.File+" "+p.Class)
	}
	words = withPrefix("; red proof: ", strings.Join(clip.List(all, 10), ", "))
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
		return Entry{Line: sentence("committed", " "+transcript.ShortSHA(d.HeadSHA)+" on ", d.Branch)}
	case "push":
		return Entry{Line: sentence("pushed", " ", d.Branch, " to ", d.Remote)}
	case "pull_request":
		return Entry{Line: sentence("pull request", withPrefix(" of ", d.About), " "+d.Operation+": ", d.URL)}
	}
	return Entry{Line: sentence(d.Step, fmt.Sprintf(" on #%d %s: ", d.Number, d.Operation), d.URL)}
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
	e := Entry{Line: sentence("inspected", ": ", cmp.Or(strings.Join(found, ", "), "nothing is left of what was found")), Bad: !d.Empty(), Detail: d.Empty()}
	for _, s := range (&sections.Source{View: &transcript.View{ChangeState: transcript.ChangeState{Inspection: d}}}).ForPages(sections.Findings) {
		e.Texts = append(e.Texts, LongText{s.Title, document.PlainText(s.Blocks...)})
	}
	return e
}
