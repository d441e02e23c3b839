package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ReadGuides returns the AGENTS.md files of a base commit in the folders from the root down to dir. It warns about files
// that are too large and about links, and skips them: a link may lead to a file that changes can edit.
func ReadGuides(base settings.Commit, dir string, warn provider.Warn) ([]briefing.Guide, error) {
	return briefing.ReadGuides(dir, func(path string) ([]byte, error) {
		raw, err := base.ReadBase(path, settings.MaxFileBytes)
		if errors.As(err, new(*gitops.TooLargeError)) {
			warn("guide_too_large", "%s.", outcome.Sentence(err.Error()))
			return nil, fs.ErrNotExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			if entry, _ := base.BaseEntry(path); entry.Kind == gitops.BaseLink {
				warn("guide_link", "%s is a symbolic link, which is not followed; commit the text itself.", path)
			}
		}
		return raw, err
	})
}

// FurtherGuides returns the paths of the AGENTS.md files in folders below dir, relative to dir.
func FurtherGuides(ctx context.Context, checkout *gitops.Checkout, dir string) ([]string, error) {
	tracked, err := checkout.TrackedEndingIn(ctx, briefing.GuideName)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimPrefix(path.Clean(dir)+"/", "./")
	var further []string
	for _, name := range tracked {
		if below, inside := strings.CutPrefix(name, folder); inside && below != briefing.GuideName {
			further = append(further, below)
		}
	}
	return further, nil
}

// Brief begins the conversation with the briefing b, which has the task and the guides. completeBriefing adds the rest.
// baseline has the results of the checks on the base commit, and may be empty.
func (a *Agent) Brief(b briefing.Briefing, baseline []transcript.VerifyRow) error {
	input, err := a.completeBriefing(b, baseline).Input()
	if err != nil {
		return err
	}
	a.runFacts = input[:len(input)-1] // the last item is the task
	a.conversation.Begin(input...)
	return nil
}

// completeBriefing returns b with the facts that the agent knows, such as its place, limits and checks.
func (a *Agent) completeBriefing(b briefing.Briefing, baseline []transcript.VerifyRow) briefing.Briefing {
	j, base := a.Job, a.Workspace.Base()
	b.Place = briefing.Place{
		Root: a.Sandboxes.SandboxPath(a.Place()), Directory: a.workDir(), Base: strings.TrimSpace(base.Branch + " " + base.SHA),
		Sandbox: a.Sandboxes.DescribeFilesToModel(), Network: a.Sandboxes.DescribeNetworkToModel(),
	}
	b.MaxFiles, b.MaxLines, b.MaxFileSize, b.WantsAnswer = j.Limits.DiffFiles, j.Limits.DiffLines, j.Limits.FileSize, j.Task.Expects == "answer"
	b.Ways = a.toolset.actionPhrases()
	b.Lessons = a.Memory.Index(b.Ways.Lessons)
	b.Verify, b.Guides = a.describeChecks(baseline), slices.Clone(b.Guides)
	for i := range b.Guides {
		b.Guides[i].Text = a.Record.Redact(b.Guides[i].Text)
	}
	b.Skills = a.Skills.Catalogue
	for _, step := range j.Setup {
		b.Setup = append(b.Setup, step.Run)
	}
	if neverPublishesProtected(j.Policy) {
		b.Protected = j.Policy.Protect
	}
	return b
}

// describeChecks returns the job's checks with notes: the condition of a check, a result on the base commit other
// than green, and whether it must prove the tests.
func (a *Agent) describeChecks(baseline []transcript.VerifyRow) []briefing.Check {
	checks := make([]briefing.Check, 0, len(a.Job.Verify))
	for i, check := range a.Job.Verify {
		var notes []string
		switch {
		case len(check.When) > 0:
			notes = append(notes, "if the change touches "+strings.Join(check.When, ", "))
		case i < len(baseline) && baseline[i].Before != "green":
			result := baseline[i].Before
			if tests := baseline[i].DescribeTests(); tests != "" {
				result += " (" + tests + ")"
			}
			demand := "it must become green"
			if check.Must == "no_worse" {
				demand = "it may stay so"
			}
			notes = append(notes, fmt.Sprintf("before any change: %s, see %s", result, a.Record.Join(baseline[i].Log)), demand)
		}
		if check.ProvesTests() {
			notes = append(notes, "with only the tests of your change on the base it has to fail")
		}
		checks = append(checks, briefing.Check{Run: check.Run, Note: strings.Join(notes, "; ")})
	}
	return checks
}

// nudgeHead begins every question about an early end.
const nudgeHead = "You ended, but "

// StoppedWords tell a continuing agent about its killed processes.
const StoppedWords = "Commands that you had left running were stopped."

// earlyEndQuestion returns a message that asks the agent whether it is done, if its end looks too early, or "".
// expected is task.expects. unchanged means nothing needs publishing. leftOut is "", or the end of a sentence
// that names files which cannot be published.
func earlyEndQuestion(expected string, steps []transcript.PlanStep, unchanged bool, leftOut string) string {
	if unchanged && leftOut != "" {
		return nudgeHead + "nothing of your work can be published: the checkout is as it was" + leftOut + ". A folder with a .git of its own, the commit of a submodule " +
			"and what nobody may read are never part of a change. Put that right, or end again and say why in your last message."
	}
	if unchanged && expected == "change" {
		return nudgeHead + "nothing in the checkout has changed, and the task expects a change. If it can be made, make it now. " +
			"If nothing needs to change or it cannot be done, end again and say why in your last message. " + StoppedWords
	}
	var open []string
	for _, step := range steps {
		if step.Status != "completed" {
			open = append(open, "- "+step.Step)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return nudgeHead + "your plan has open steps:\n" + strings.Join(open, "\n") +
		"\nDo them now, or bring the plan up to date and say in your last message what was left and why. " + StoppedWords
}
