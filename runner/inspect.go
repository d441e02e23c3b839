package runner

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
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// mostOfLog is how much of a check's output is looked at, in bytes of its end.
const mostOfLog = 1 << 20

// inspect searches a change for signs that a reviewer should see first. It records them, and refuses
// the change if the job says so.
func (r *runner) inspect(ctx context.Context, w *work, j *job.Job, change *gitops.ChangeSet) error {
	found, err := r.lookInto(ctx, w, change)
	if err != nil {
		return err
	}
	nothing := r.end.found.Empty() && found.Empty()
	r.end.found = found
	if !nothing {
		if err := r.rec.Append(transcript.TypeInspection, found); err != nil {
			return err
		}
	}
	return refusedBy(j.Policy, found)
}

// lookInto returns the signs in a change, without recording them.
func (r *runner) lookInto(ctx context.Context, w *work, change *gitops.ChangeSet) (found transcript.Inspection, err error) {
	if change.Empty() {
		return found, nil
	}
	diff, err := r.patchLines(ctx)
	if err != nil {
		return found, err
	}
	if found.Silenced, found.SilencedMore, err = silenced.Find(diff); err != nil {
		return found, err
	}
	seen := silenced.Observe(w.baseline.Rows, w.table.Rows, r.printed)
	found.Silenced = append(seen, found.Silenced...)
	if found.Claims, err = r.unfounded(ctx, w, change, func() (*lines.Diff, error) { return diff, nil }); err != nil {
		return found, err
	}
	found.Starts, err = r.started(w, change)
	return found, err
}

// unfounded lists what the agent's summary claims and neither the change, the calls nor the checks show.
func (r *runner) unfounded(ctx context.Context, w *work, change *gitops.ChangeSet, diff func() (*lines.Diff, error)) ([]string, error) {
	e := claims.Evidence{Paths: changeset.Paths(change.Files), Diff: diff}
	log, err := r.rec.Open(record.TranscriptFile)
	switch {
	case err == nil:
		defer log.Close()
		e.Texts = r.textsOf(w, boundedfile.Until(ctx, log))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read %s: %w", record.TranscriptFile, err)
	}
	return claims.Unfounded(r.end.summary(), e)
}

// textsOf yields what the checks, the setup commands and the calls in a transcript ran and printed.
func (r *runner) textsOf(w *work, log io.Reader) iter.Seq2[claims.Text, error] {
	return func(yield func(claims.Text, error) bool) {
		for _, rows := range [][]transcript.VerifyRow{w.baseline.Rows, w.table.Rows} {
			for _, row := range rows {
				if !yield(claims.Text{Asked: row.Run, Printed: r.printed(row.Log)}, nil) {
					return
				}
			}
		}
		for _, step := range w.job().Setup {
			if !yield(claims.Text{Asked: step.Run}, nil) {
				return
			}
		}
		claims.Calls(log)(yield)
	}
}

// largestRead is the most of a file that a workflow runs that is looked at, in bytes.
const largestRead = 256 << 10

// started lists the jobs of workflows that the pushed branch starts and that run files of the change.
func (r *runner) started(w *work, change *gitops.ChangeSet) ([]transcript.Start, error) {
	checkout := w.workspace.Checkout()
	of := func(tree gitops.Tree) workflows.Tree {
		return workflows.Tree{
			Read: func(path string) ([]byte, error) {
				content, err := checkout.ReadFile(tree, path, largestRead)
				if errors.As(err, new(*gitops.TooLargeError)) {
					return []byte{}, nil // it is there
				}
				return content, err
			},
			Link: func(path string) (string, error) {
				entry, err := checkout.EntryIn(tree, path)
				return entry.Target, err
			},
			List: func(folder string) ([]string, error) { return checkout.FilesIn(tree, folder) },
		}
	}
	c := workflows.Change{Base: of(change.Base.Tree), Now: of(change.Tree), Branch: w.task.Branch, BaseBranch: change.Base.Branch, Paths: changeset.Paths(change.Files)}
	return workflows.Find(c)
}

// patchLines reads the lines of the change.
func (r *runner) patchLines(ctx context.Context) (*lines.Diff, error) {
	patch, err := r.rec.Open(record.PatchFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	defer patch.Close()
	return lines.Read(boundedfile.Until(ctx, patch))
}

// printed returns the end of a check's output; empty if there is none.
func (r *runner) printed(log string) string {
	if log == "" {
		return ""
	}
	text, err := r.rec.Tail(log, mostOfLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.rec.Warn("log_unread", "What a check printed cannot be read (%v); the numbers of its tests were not compared.", err)
	}
	return text
}

// inspected returns f, which also inspects the change that it judges.
func (r *runner) inspected(rd *ready, f publish.Follow) publish.Follow {
	judge := f.Judge
	f.Judge = func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
		if err := judge(ctx, j, change); err != nil {
			return err
		}
		return r.inspect(ctx, &work{ready: rd, table: r.end.work.table}, j, change)
	}
	return f
}

// foundRefusal returns the end of a run whose job refuses signs or jobs found in its change; nil for
// none. It reads nothing for a job that refuses neither.
func (r *runner) foundRefusal(ctx context.Context, w *work) error {
	if p := w.job().Policy; p.Silenced != "refuse" && p.WorkflowRisk != "refuse" {
		return nil
	}
	found, err := r.lookInto(ctx, w, w.change)
	if err != nil {
		return err
	}
	return refusedBy(w.job().Policy, found)
}

// refusedBy returns the end of a run whose job refuses found; nil for none.
func refusedBy(p job.Policy, found transcript.Inspection) error {
	if p.Silenced == "refuse" && found.Silences() {
		return outcome.Stopf(outcome.PolicyViolation, "silenced",
			"A check may pass without testing: %s (policy.silenced); nothing was published.", silencedWords(found.Silenced))
	}
	if p.WorkflowRisk == "refuse" && found.Risky() {
		return outcome.Stopf(outcome.PolicyViolation, "workflow_risk",
			"The branch would start %s (policy.workflow_risk); nothing was pushed.", startWords(found.Starts))
	}
	return nil
}

// startWords name the first jobs with workflow, rights and file.
func startWords(all []transcript.Start) string {
	var jobs []string
	for _, s := range all {
		if !s.Rights() {
			continue
		}
		var files []string
		for _, f := range s.Files {
			files = append(files, f.Path)
		}
		jobs = append(jobs, fmt.Sprintf("%s (job %s with %s), which runs %s", markdown.FileName(s.Workflow), markdown.FileName(s.Job), strings.Join(slices.Concat(s.Secrets, s.Writes), ", "), markdown.SomeFiles(files)))
	}
	return strings.Join(clip.List(jobs, 3), ", ")
}

// silencedWords names the first signs.
func silencedWords(all []transcript.Silenced) string {
	var places []string
	for _, s := range all {
		place := "check " + s.Check
		if s.File != "" {
			place = markdown.FileName(s.File)
		}
		if s.Line > 0 {
			place += fmt.Sprintf(":%d", s.Line)
		}
		places = append(places, fmt.Sprintf("%s (%s)", place, s.Why))
	}
	return strings.Join(clip.List(places, 3), ", ")
}
