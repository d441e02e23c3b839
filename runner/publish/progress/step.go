package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

// Mask masks values in the log of this step and of later steps. It writes them to the log to do so, so it
// only works if no one redirects the log.
func (w *Watch) Mask(values []secrets.Value) {
	if w.Step == nil || !w.Step.MayMask {
		return
	}
	for _, each := range values {
		_ = w.Step.Log.Mask(each.Secret) // ignored: a log that cannot be written shows no secret
	}
}

// beginGroup ends the current group of the log. It begins another one, unless title is "". The group's start
// is written with its first line.
func (w *Watch) beginGroup(title string) {
	if w.Step == nil || title == w.group {
		return
	}
	if w.groupOpen {
		_ = w.Step.Log.EndGroup() // ignored: the run does not depend on its progress output
	}
	w.group, w.groupOpen = title, false
}

// addToGroup writes lines to the current group of the log.
func (w *Watch) addToGroup(text string) {
	if w.Lines == nil {
		return
	}
	w.openGroup()
	if _, err := io.WriteString(w.Lines, w.eraseSequence()+text); err != nil {
		w.Lines = nil // nobody reads any more
	}
	w.written = time.Now()
}

// openGroup writes the start of the current group, if it is not written yet.
func (w *Watch) openGroup() {
	if w.group != "" && !w.groupOpen {
		_ = w.Step.Log.Group(w.group)
		w.groupOpen = true
	}
}

// StepResult is a run's result for the step.
type StepResult struct {
	Result record.Result
	Record *record.Record
	Folder string // folder of the checkout in which the checks ran, with slashes
	// Site has the pages of the run's branch and pull request, Artifacts is the page of the uploaded files.
	Site      transcript.Site
	Artifacts string
	// Refused marks the record of a rejected bundle.
	Refused bool
}

// ReportToStep writes the step's outputs, summary and annotations.
func (w *Watch) ReportToStep(t StepResult) error {
	if w.Step == nil {
		return nil
	}
	w.mu.Lock()
	w.beginGroup("")
	w.mu.Unlock()
	err := errors.Join(t.setOutputs(w.Step), w.Step.AddSummary(t.summary()))
	for _, a := range t.annotations() {
		a.Title, a.Message = Printable(a.Title), markdown.Show(a.Message)
		err = errors.Join(err, w.Step.Log.Annotate(a))
	}
	return err
}

// Outputs lists the step's outputs, in the order of docs/reference/action.md.
var Outputs = []string{
	"outcome", "reason", "message", "pull-request-number", "pull-request-url", "pull-request-operation", "branch", "head-sha",
	"cost-usd", "tokens", "plan", "summary", "structured-output", "red-proof", "artifact", "run-directory",
}

// setOutputs sets all outputs of the step. It stops at the first output that cannot be written. JSON that is
// too long for an output is left empty.
func (t StepResult) setOutputs(step *actions.Step) error {
	result := t.Result
	plan, err := json.Marshal(result.Plan)
	if err != nil {
		return err
	}
	values := map[string]string{
		"outcome": string(result.Outcome), "reason": result.Reason, "message": result.Message,
		"pull-request-url": result.PullRequest.URL, "pull-request-operation": result.PullRequest.Operation,
		"branch": result.Branch, "head-sha": result.HeadSHA, "tokens": strconv.FormatInt(result.Usage.Input+result.Usage.Output, 10),
		"plan": string(plan), "summary": result.Summary, "run-directory": result.Directory, "artifact": t.artifactName(),
	}
	if proofs := (transcript.Verify{Rows: result.Verify}).BestProofs(); len(proofs) > 0 {
		raw, encodeErr := json.Marshal(proofs)
		values["red-proof"], err = string(raw), errors.Join(err, encodeErr)
	}
	if result.PullRequest.Number > 0 {
		values["pull-request-number"] = strconv.Itoa(result.PullRequest.Number)
	}
	if result.CostUSD != nil {
		values["cost-usd"] = strconv.FormatFloat(*result.CostUSD, 'f', -1, 64)
	}
	if result.Output != "" {
		output, readErr := t.Record.Read(result.Output)
		values["structured-output"], err = string(output), errors.Join(err, readErr)
	}
	for _, name := range []string{"plan", "structured-output", "red-proof"} {
		if len(values[name]) > actions.MaxOutputBytes { // a cut text would be no JSON
			values[name] = ""
			err = errors.Join(err, fmt.Errorf("the output %s is left empty, since it is longer than %d bytes; the run directory has it", name, actions.MaxOutputBytes))
		}
	}
	for _, name := range Outputs {
		if failed := step.SetOutput(name, values[name]); failed != nil { // the others would fail like it
			return errors.Join(err, failed)
		}
	}
	return err
}

// artifactName returns the name for the upload of the run's files, or "" without files. A workflow accepts a
// name only once, so it contains the run's id.
func (t StepResult) artifactName() string {
	if t.Artifacts == "" || t.Result.Directory == "" || !record.IsID(t.Result.RunID) {
		return ""
	}
	return "agent-ci-" + t.Result.RunID
}

// summaryLimit is the longest summary of a run, in UTF-16 code units.
const summaryLimit = 100_000

// summary returns the job summary as Markdown: headline, links and outline of the run. Without a readable
// transcript it ends after the message.
func (t StepResult) summary() string {
	result := t.Result
	sign, words := body.Ending(string(result.Outcome), result.Reason)
	head, below := "## "+sign+"agent-ci: "+words+"\n\n", ""
	if links := t.links(); links != "" {
		below = links + "\n\n"
	}
	reason := markdown.Text(result.Reason) + ": " + body.Sentence(t.Site, result.Message) + "\n"
	if t.Record.Directory == nil || t.Refused {
		return head + below + reason
	}
	view, err := t.Record.View()
	if err != nil || view.Task.Text == "" {
		return head + below + reason
	}
	if result.Outcome == outcome.Changed || result.Outcome == outcome.VerifyFailed {
		if verdict := body.Verdict(view, sections.NoDoubt); verdict != "" {
			head = "## agent-ci: " + verdict + "\n"
		}
	}
	end := view.Finished
	if isAsRecorded := end != nil && end.Outcome == string(result.Outcome) && end.Reason == result.Reason; !isAsRecorded { // publishing ended differently
		below += reason + "\n"
	}
	return head + below + body.Outline(view, t.Site, summaryLimit)
}

// links returns links to the pull request and the files of the run.
func (t StepResult) links() string {
	var all []string
	pull := t.Result.PullRequest
	if page := t.Site.Page(pull.URL); page != "" && t.Site.Server != "" {
		action := pull.Operation
		if action == "none" {
			action = "not changed"
		}
		all = append(all, fmt.Sprintf("**%s** %s", markdown.Link(fmt.Sprintf("Pull request #%d", pull.Number), page), action))
	}
	if page := t.Site.Page(t.Artifacts); page != "" && t.artifactName() != "" {
		all = append(all, markdown.Link("report and transcript", page))
	}
	return strings.Join(all, " · ")
}

// annotations returns the result, the warnings, and the places that failed checks name.
func (t StepResult) annotations() []actions.Annotation {
	result, level := t.Result, "error"
	if result.Outcome.ExitCode() == 0 {
		level = "notice"
	}
	all := []actions.Annotation{{Level: level, Title: "agent-ci: " + string(result.Outcome), Message: result.Message}}
	for _, w := range result.Warnings {
		all = append(all, actions.Annotation{Level: "warning", Title: "agent-ci: " + w.Code, Message: w.Message})
	}
	for _, row := range result.Verify {
		if !row.Passed && row.After != "" && row.Log != "" {
			all = append(all, t.locationsIn(row)...)
		}
	}
	return all
}

// locationPattern matches places in the output of compilers, linters and tests: file:line: message, or
// file:line:column: message.
var locationPattern = lazyregexp.New(`(?m)^[ \t]*([\w./@+-]{1,200}):([1-9][0-9]{0,6})(?::([1-9][0-9]{0,4}))?:[ \t]+(\S.{0,500})$`)

// maxLocations is how many annotations one check gets.
const maxLocations = 9

// locationsIn returns the places named at the end of a failed check's log.
func (t StepResult) locationsIn(row transcript.VerifyRow) []actions.Annotation {
	tail, err := t.Record.Tail(row.Log, 256<<10)
	if err != nil {
		return nil
	}
	var all []actions.Annotation
	for _, m := range locationPattern().FindAllStringSubmatch(tail, -1) {
		file := path.Join(t.Folder, path.Clean(m[1]))
		if !filepath.IsLocal(file) || strings.HasPrefix(m[1], "/") || len(all) == maxLocations {
			continue
		}
		line, _ := strconv.Atoi(m[2]) // the pattern permits only digits
		column, _ := strconv.Atoi(m[3])
		all = append(all, actions.Annotation{Level: "error", Title: row.Name, File: file, Line: line, Column: column, Message: m[4]})
	}
	return all
}
