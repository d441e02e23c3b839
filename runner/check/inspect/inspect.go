// Package inspect searches a change for signs that a reviewer should see first: silenced checks,
// claims without evidence, and workflows that the pushed branch would start.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/check/claims"
	"github.com/agent-ci/agent-ci/runner/check/lines"
	"github.com/agent-ci/agent-ci/runner/check/silenced"
	"github.com/agent-ci/agent-ci/runner/check/workflows"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// maxLogBytes is how many bytes at the end of a check's output are examined.
const maxLogBytes = 1 << 20

// Case is a change with the results of its run.
type Case struct {
	Record   *record.Record // its directory has the change as a patch
	Checkout *gitops.Checkout
	Job      *job.Job
	Branch   string // the branch that would be pushed
	Baseline []transcript.VerifyRow
	Table    []transcript.VerifyRow // the checks on the change
	Summary  string                 // the agent's
	Change   *gitops.ChangeSet
}

// Signs returns signs of silenced checks, and the jobs that the pushed branch would start.
func (c Case) Signs(ctx context.Context) (found transcript.Inspection, err error) {
	if c.Change.Empty() {
		return found, nil
	}
	diff, err := c.patchLines(ctx)
	if err != nil {
		return found, err
	}
	if found.SilencedSigns, found.MoreSilencedSigns, err = silenced.Find(diff); err != nil {
		return found, err
	}
	found.SilencedSigns = append(silenced.Observe(c.Baseline, c.Table, c.checkOutput), found.SilencedSigns...)
	found.WorkflowStarts, err = c.startedJobs()
	return found, err
}

// Claims returns what the summary claims without evidence in the change, the calls or the checks.
func (c Case) Claims(ctx context.Context) ([]string, error) {
	if c.Change.Empty() {
		return nil, nil
	}
	e := claims.Evidence{
		Paths: changeset.Paths(c.Change.Files), Diff: func() (*lines.Diff, error) { return c.patchLines(ctx) },
	}
	log, err := c.Record.Open(record.TranscriptFile)
	switch {
	case err == nil:
		defer log.Close()
		e.Texts = c.evidenceTexts(boundedfile.WithContext(ctx, log))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read %s: %w", record.TranscriptFile, err)
	}
	return claims.Unfounded(c.Summary, e)
}

// evidenceTexts yields commands and outputs of checks, setup commands, and inputs and outputs of calls.
func (c Case) evidenceTexts(log io.Reader) iter.Seq2[claims.Text, error] {
	return func(yield func(claims.Text, error) bool) {
		for _, rows := range [][]transcript.VerifyRow{c.Baseline, c.Table} {
			for _, row := range rows {
				if !yield(claims.Text{Input: row.Run, Output: c.checkOutput(row.Log)}, nil) {
					return
				}
			}
		}
		for _, step := range c.Job.Setup {
			if !yield(claims.Text{Input: step.Run}, nil) {
				return
			}
		}
		claims.Calls(log)(yield)
	}
}

// maxFileBytes is the size up to which a file that a workflow runs is read, in bytes.
const maxFileBytes = 256 << 10

// startedJobs returns the jobs that the pushed branch starts and that run files of the change.
func (c Case) startedJobs() ([]transcript.WorkflowStart, error) {
	return workflows.Find(workflows.Change{
		Base: treeIn{c.Checkout, c.Change.Base.Tree}, Pushed: treeIn{c.Checkout, c.Change.Tree}, Branch: c.Branch, BaseBranch: c.Change.Base.Branch, Paths: changeset.Paths(c.Change.Files),
	})
}

// treeIn is a workflows.Tree in the repository of a checkout.
type treeIn struct {
	checkout *gitops.Checkout
	tree     gitops.Tree
}

// Read returns the content of a file. It is empty for a file that is too large to read, which still exists.
func (t treeIn) Read(path string) ([]byte, error) {
	content, err := t.checkout.ReadFile(t.tree, path, maxFileBytes)
	if errors.As(err, new(*gitops.TooLargeError)) {
		return []byte{}, nil
	}
	return content, err
}

// Link returns the target of a link, or "".
func (t treeIn) Link(path string) (target string, err error) {
	entry, err := t.checkout.EntryIn(t.tree, path)
	return entry.Target, err
}

// List returns the names of the files in a folder.
func (t treeIn) List(folder string) ([]string, error) { return t.checkout.FilesIn(t.tree, folder) }

// patchLines returns the changed lines.
func (c Case) patchLines(ctx context.Context) (*lines.Diff, error) {
	patch, err := c.Record.Open(record.PatchFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	defer patch.Close()
	return lines.Read(boundedfile.WithContext(ctx, patch))
}

// checkOutput returns the end of a check's output. It returns "" without a log, and warns about an unreadable
// one.
func (c Case) checkOutput(log string) string {
	if log == "" {
		return ""
	}
	text, err := c.Record.Tail(log, maxLogBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Record.Warn("log_unread", "What a check printed cannot be read (%v); the numbers of its tests were not compared.", err)
	}
	return text
}

// Refusal returns an outcome.Stop if the job's policy refuses the change for these findings, or nil.
func Refusal(p job.Policy, found transcript.Inspection) error {
	if p.Silenced == "refuse" && found.RefusesSilenced() {
		return outcome.Stopf(outcome.PolicyViolation, "silenced",
			"A check may pass without testing: %s (policy.silenced); nothing was published.", describeSigns(found.SilencedSigns))
	}
	if p.WorkflowRisk == "refuse" && found.Risky() {
		return outcome.Stopf(outcome.PolicyViolation, "workflow_risk",
			"The branch would start %s (policy.workflow_risk); nothing was pushed.", describeStartedJobs(found.WorkflowStarts))
	}
	return nil
}

// describeStartedJobs names up to three jobs that the branch would start with secrets or write
// access, and the changed files that they run.
func describeStartedJobs(all []transcript.WorkflowStart) string {
	var jobs []string
	for _, s := range all {
		if !s.HasRights() {
			continue
		}
		var files []string
		for _, f := range s.Files {
			files = append(files, f.Path)
		}
		jobs = append(jobs, fmt.Sprintf("%s (job %s with %s), which runs %s", markdown.FileName(s.Workflow), markdown.FileName(s.Job), strings.Join(slices.Concat(s.Secrets, s.Writes), ", "), markdown.SomeFiles(files)))
	}
	return clip.List(jobs, 3)
}

// describeSigns names up to three signs of silenced checks.
func describeSigns(all []transcript.SilencedSign) string {
	var places []string
	for _, s := range all {
		place := "check " + s.Check
		if s.File != "" {
			place = markdown.FileName(s.File)
		}
		if s.Line > 0 {
			place += fmt.Sprintf(":%d", s.Line)
		}
		places = append(places, fmt.Sprintf("%s (%s)", place, s.Reason))
	}
	return clip.List(places, 3)
}
