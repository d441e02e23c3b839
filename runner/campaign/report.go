package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// noUsage is the code of the warning that an endpoint returns no usage data.
const noUsage = "no_usage"

// maxMessage is the longest message in a report, in characters.
const maxMessage = 1000

// ReadReport returns the report of the run in a directory. found is false if the run has no result. A nil
// usage or cost is unknown; the budget then counts what was reserved for the claim.
func ReadReport(dir *record.Directory, claimed Claimed) (r Report, found bool, err error) {
	var result record.Result
	if found, err = dir.ReadJSON(record.ResultFile, &result); err != nil || !found {
		return Report{}, false, err
	}
	r = Report{
		Target: claimed.Target.Key, Template: claimed.Template, Attempt: claimed.Attempt, RunID: result.RunID, Outcome: string(result.Outcome), Reason: result.Reason, Message: markdown.Cut(result.Message, maxMessage),
		Commit: result.HeadSHA, Branch: result.Branch, Transcript: result.TranscriptSHA256,
		PullRequest: result.PullRequest,
	}
	r.Host, _ = os.Hostname()
	if start := record.StartTime(result.RunID); !start.IsZero() {
		if info, err := dir.Root().Stat(record.ResultFile); err == nil {
			r.Seconds = info.ModTime().Sub(start).Round(time.Millisecond).Seconds()
		}
	}
	usageKnown := !slices.ContainsFunc(result.Warnings, func(w transcript.Warning) bool { return w.Code == noUsage })
	tokens := result.Usage.Input + result.Usage.Output
	if usageKnown || tokens == 0 {
		r.Tokens = &tokens
	}
	switch {
	case result.CostUSD != nil && usageKnown:
		r.CostUSD = result.CostUSD
	case tokens == 0: // no model was asked
		r.CostUSD = new(float64)
	}
	return r, true, nil
}

// MaxReportBytes is the longest report, in bytes of JSON. Kubernetes has the same limit for a termination message
// (https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/).
const MaxReportBytes = 4096

// ReportSuffix is the suffix of report file names.
const ReportSuffix = ".report.json"

// Encode returns a report as JSON of up to MaxReportBytes bytes. It halves the message until the report fits.
func (r Report) Encode() ([]byte, error) {
	for limit := MaxReportBytes; ; limit /= 2 {
		r.Message = markdown.Cut(r.Message, max(limit, 1))
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode the report: %w", err)
		}
		if len(raw) <= MaxReportBytes {
			return raw, nil
		}
		if limit == 0 {
			return nil, fmt.Errorf("encode the report: it has %d bytes, and may have %d", len(raw), MaxReportBytes)
		}
	}
}

// Largest accepted numbers in a report. Larger ones would make sums, and so budgets, wrong.
const (
	mostUSD    = 1e9
	mostTokens = 1 << 40
)

// DecodeReport parses a report, which may come from a stranger.
func DecodeReport(raw []byte) (Report, error) {
	var r Report
	if len(raw) > MaxReportBytes {
		return r, fmt.Errorf("read a report: it is longer than %d bytes", MaxReportBytes)
	}
	if err := plainjson.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("read a report: %w", err)
	}
	_, known := outcome.ExitCodes()[outcome.Outcome(r.Outcome)]
	switch {
	case !known:
		return r, fmt.Errorf("read a report: there is no outcome %q", r.Outcome)
	case r.CostUSD != nil && *r.CostUSD < 0, r.Tokens != nil && *r.Tokens < 0, r.PullRequest.Number < 0:
		return r, errors.New("read a report: it has a number below 0")
	case r.CostUSD != nil && *r.CostUSD > mostUSD, r.Tokens != nil && *r.Tokens > mostTokens:
		return r, fmt.Errorf("read a report: it tells of more than %.0f dollars or %d tokens", float64(mostUSD), mostTokens)
	}
	return r, nil
}

// reportDepth is how deep ReadReports searches: it expects reports in an artifact's folder of runs.
const reportDepth = 3

// ReadReports reads the report files below a folder. Errors of invalid ones go to onError. It skips run directories,
// because the agent's commands may write there.
func ReadReports(folder string, onError func(error)) ([]Report, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("read the reports: %w", err)
	}
	defer root.Close()
	var all []Report
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read the reports: %w", err)
		case entry.IsDir() && (strings.Count(name, "/") >= reportDepth || isRun(root, name)):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !strings.HasSuffix(name, ReportSuffix):
			return nil
		}
		raw, err := boundedfile.ReadIn(root, name, MaxReportBytes)
		if err != nil {
			onError(fmt.Errorf("read a report: %w", err))
			return nil
		}
		r, err := DecodeReport(raw)
		if err != nil {
			onError(fmt.Errorf("%s: %w", filepath.Join(folder, name), err))
			return nil
		}
		all = append(all, r)
		return nil
	})
	return all, err
}

// isRun reports whether a folder is a run directory.
func isRun(root *os.Root, name string) bool {
	_, err := root.Lstat(path.Join(name, record.TranscriptFile))
	return err == nil
}

// LostReport returns the report of a run without a result. Its cost is unknown.
func LostReport(claimed Claimed, why error) Report {
	return Report{
		Target: claimed.Target.Key, Template: claimed.Template, Attempt: claimed.Attempt, Outcome: string(outcome.InternalError), Reason: "no_result",
		Message: fmt.Sprintf("The run left no result: %v.", why), PullRequest: record.PullRequest{Operation: "none"},
	}
}

// Unpaid returns the report with a cost of 0.
func (r Report) Unpaid() Report {
	r.CostUSD, r.Tokens = new(float64), new(int64)
	return r
}

// ExitCode returns the exit status for the outcome (docs/reference/outcomes.md).
func (r Report) ExitCode() int {
	return (&outcome.Stop{Outcome: outcome.Outcome(r.Outcome), Reason: r.Reason}).ExitCode()
}

// IsResumable reports whether a new start may resume the run: it was cancelled, or the model or forge failed.
func (r Report) IsResumable() bool {
	return slices.Contains([]outcome.Outcome{outcome.Cancelled, outcome.ModelFailed, outcome.ForgeFailed}, outcome.Outcome(r.Outcome))
}
