package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// Briefing is what an agent is to know before its first turn, beside its settings
// and where it works.
type Briefing struct {
	Task     agent.Task
	Guides   []agent.Guide          // AGENTS.md files, root first
	Further  []string               // paths, from the working directory, of those below it
	Baseline []transcript.VerifyRow // how the checks are before any change; may be empty
}

// ReadGuides reads the AGENTS.md files of a base commit from its root down to dir.
// One that no model could read to its end is left out.
func ReadGuides(base settings.Commit, dir string, warn Warn) ([]agent.Guide, error) {
	return agent.ReadGuides(dir, func(path string) ([]byte, error) {
		raw, err := base.ReadBase(path, settings.MaxFile)
		var large *gitops.TooLargeError
		if errors.As(err, &large) {
			warn("guide_too_large", "%s.", outcome.Sentence(err.Error()))
			return nil, fs.ErrNotExist
		}
		return raw, err
	})
}

// FurtherGuides are the AGENTS.md files below dir, from there.
func FurtherGuides(ctx context.Context, checkout *gitops.Checkout, dir string) ([]string, error) {
	tracked, err := checkout.TrackedNamed(ctx, agent.GuideName)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimPrefix(path.Clean(dir)+"/", "./")
	var further []string
	for _, name := range tracked {
		if below, inside := strings.CutPrefix(name, folder); inside && below != agent.GuideName {
			further = append(further, below)
		}
	}
	return further, nil
}

// Brief begins the conversation: the facts of the run, the repository's guides, the
// task.
func (a *Agent) Brief(b Briefing) error {
	input, err := a.briefing(b).Input()
	if err != nil {
		return err
	}
	a.conversation.Begin(input...)
	return nil
}

func (a *Agent) briefing(b Briefing) agent.Briefing {
	j, base := a.Job, a.Workspace.Base()
	briefing := agent.Briefing{
		Root: a.Workspace.Root(), Directory: a.workDir(), Base: strings.TrimSpace(base.Branch + " " + base.SHA),
		Sandbox: a.Sandboxes.Words(), Network: a.Sandboxes.NetworkWords(),
		Verify: a.checks(b.Baseline), Further: b.Further, Task: b.Task,
		Files: j.Limits.DiffFiles, Lines: j.Limits.DiffLines, Answer: j.Task.Expects == "answer",
	}
	for _, guide := range b.Guides {
		guide.Text = a.Record.Redact(guide.Text)
		briefing.Guides = append(briefing.Guides, guide)
	}
	for _, step := range j.Setup {
		briefing.Setup = append(briefing.Setup, step.Run)
	}
	if keepsProtected(j.Policy) {
		briefing.Protected = j.Policy.Protect
	}
	return briefing
}

// checks tell of each check, and of what it says of the base when that is not that
// all is well.
func (a *Agent) checks(baseline []transcript.VerifyRow) []agent.Check {
	checks := make([]agent.Check, 0, len(a.Job.Verify))
	for i, check := range a.Job.Verify {
		c := agent.Check{Run: check.Run}
		if i < len(baseline) && baseline[i].Before != "green" {
			c.Note = fmt.Sprintf("before any change: %s, see %s; ", baseline[i].Before, a.Record.Join(baseline[i].Log))
			if check.Must == "no_worse" {
				c.Note += "it may stay so"
			} else {
				c.Note += "it must become green"
			}
		}
		checks = append(checks, c)
	}
	return checks
}
