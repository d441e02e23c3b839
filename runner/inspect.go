package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/runner/check/lines"
	"github.com/agent-ci/agent-ci/runner/check/silenced"
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

// inspect looks in a change for what the judge does not refuse and a reviewer should see first. It records what
// it found, and refuses the change where the job wants that.
func (r *runner) inspect(ctx context.Context, w *work, j *job.Job, change *gitops.ChangeSet) error {
	found, err := r.lookInto(ctx, w, change)
	if err != nil {
		return err
	}
	nothing := r.end.found.Empty() && found.Empty()
	r.end.found = found
	if !nothing && !r.end.bundle { // the transcript of a bundle is closed
		if err := r.rec.Append(transcript.TypeInspection, found); err != nil {
			return err
		}
	}
	return refusedBy(j.Policy, found)
}

// lookInto finds what there is to find.
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
	seen := silenced.Observe(w.baseline.Rows, w.table.Rows, r.printed, true)
	found.Silenced = append(seen, found.Silenced...)
	return found, nil
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

// printed is the end of what a check printed; empty where that is not there.
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

// foundRefusal is the end of a run whose job refuses what is found in its change.
func (r *runner) foundRefusal(ctx context.Context, w *work) error {
	found, err := r.lookInto(ctx, w, w.change)
	if err != nil {
		return err
	}
	return refusedBy(w.job().Policy, found)
}

// refusedBy is the end of a run whose job refuses what was found; nil for none.
func refusedBy(p job.Policy, found transcript.Inspection) error {
	if p.Silenced == "refuse" && found.Silences() {
		return outcome.Stopf(outcome.PolicyViolation, "silenced",
			"A check may pass without testing: %s (policy.silenced); nothing was published.", silencedWords(found.Silenced))
	}
	return nil
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
