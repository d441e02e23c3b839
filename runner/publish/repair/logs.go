package repair

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/publish/repair/failinglog"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Longest excerpt of one log, and of all together, that the model gets, in bytes.
const (
	maxLog  = 24 << 10
	maxLogs = 60 << 10
)

// readLogs reads the failed steps and the logs of the red checks' jobs.
func (c *Case) readLogs(ctx context.Context) error {
	jobs, runsRead := map[int64]forge.Job{}, map[int64]bool{}
	remainingBytes := maxLogs
	for i := range c.Red[:min(len(c.Red), maxRed)] {
		red := &c.Red[i]
		if !runsRead[red.RunID] {
			runsRead[red.RunID] = true
			if err := c.readJobs(ctx, red.RunID, jobs); err != nil {
				return err
			}
		}
		job, known := jobs[red.JobID]
		if !known {
			red.RunID, red.NoLogReason = 0, "it is no job of GitHub Actions, whose logs alone can be read"
			continue
		}
		for _, step := range job.Steps {
			if _, bad := reasonByRedConclusion[step.Conclusion]; bad {
				red.FailedSteps = append(red.FailedSteps, step.Name)
			}
		}
		var err error
		if red.Log, err = c.cutLog(ctx, job, min(maxLog, remainingBytes)); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			red.NoLogReason = "it cannot be read (" + outcome.WithoutFullStop(err) + ")"
		}
		remainingBytes -= len(red.Log)
		if red.Infrastructure == "" {
			red.Infrastructure = infrastructureReason(red.Log)
		}
	}
	return nil
}

// workflowRun returns a workflow run, or nil for id 0 or a missing run. It reads each run once.
func (c *Case) workflowRun(ctx context.Context, id int64) (*forge.WorkflowRun, error) {
	if run, known := c.runs[id]; known || id == 0 {
		return run, nil
	}
	run, err := c.repository.WorkflowRun(ctx, id)
	if err != nil && forge.KindOf(err) != forge.NotFound {
		return nil, intake.ForgeFailure(fmt.Sprintf("Workflow run %d cannot be read", id), err)
	}
	c.runs[id] = run
	return run, nil
}

// readJobs adds a workflow run's jobs to jobs. It ignores a run of another commit, because any workflow can
// create a check that looks like a job of that run.
func (c *Case) readJobs(ctx context.Context, id int64, jobs map[int64]forge.Job) error {
	run, err := c.workflowRun(ctx, id)
	if err != nil || run == nil || run.HeadSHA != c.Head {
		return err
	}
	all, err := c.repository.WorkflowJobs(ctx, id)
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("The jobs of workflow run %d cannot be read", id), err)
	}
	for _, job := range all {
		jobs[job.ID] = job
	}
	return nil
}

// cutLog returns an excerpt of a job's log, of up to maxBytes bytes.
func (c *Case) cutLog(ctx context.Context, job forge.Job, maxBytes int) (string, error) {
	log, err := c.repository.JobLog(ctx, job.ID)
	if err != nil {
		return "", err
	}
	defer log.Close()
	return failinglog.Excerpt(log, job, maxBytes)
}

// infrastructurePatterns matches log lines about failed machines, networks and services. A change can print
// such lines, but that only gains one rerun of the checks.
var infrastructurePatterns = []struct {
	pattern func() *regexp.Regexp
	reason  string
}{
	{lazyregexp.New(`(?i)the runner has received a shutdown signal|lost communication with the server|the hosted runner encountered an error`), "its runner was lost"},
	{lazyregexp.New(`(?i)no space left on device`), "the disk of its runner was full"},
	{lazyregexp.New(`(?i)could not resolve host|temporary failure in name resolution|no such host|EAI_AGAIN|getaddrinfo ENOTFOUND`), "a host could not be found"},
	{lazyregexp.New(`(?i)connection reset by peer|ECONNRESET|ETIMEDOUT|TLS handshake timeout|connection timed out|i/o timeout|unexpected EOF while reading`), "a connection broke off"},
	{lazyregexp.New(`(?i)(?:HTTP|status|error|code|returned|response)\W{0,3}(?:code\W{0,3})?(?:429|500|502|503|504)\b|too many requests|toomanyrequests|service unavailable|bad gateway|gateway time-?out`), "a service did not answer"},
}

// lastLines is how many lines at the end of a log are searched for why the job ended.
const lastLines = 15

// infrastructureReason returns why the end of a log suggests an infrastructure failure, or "".
func infrastructureReason(log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	end := strings.Join(lines[max(0, len(lines)-lastLines):], "\n")
	for _, trouble := range infrastructurePatterns {
		if trouble.pattern().MatchString(end) {
			return trouble.reason
		}
	}
	return ""
}
