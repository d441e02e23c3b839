package campaign

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// noUsage is the warning of a run whose endpoint does not tell what it used.
const noUsage = "no_usage"

// ReportOf is what the run in a directory came to; false where it has come to no end. What its
// endpoint did not tell is left open, so that the claim counts.
func ReportOf(dir *record.Directory, claimed Claimed) (Report, bool, error) {
	var result record.Result
	there, err := dir.ReadJSON(record.ResultFile, &result)
	if err != nil || !there {
		return Report{}, false, err
	}
	r := Report{
		Target: claimed.Target, Template: claimed.Template, Attempt: claimed.Attempt, RunID: result.RunID, Outcome: string(result.Outcome), Reason: result.Reason, Message: result.Message,
		Commit: result.HeadSHA, Branch: result.Branch, Transcript: result.TranscriptSHA256,
		PullRequest: PullRequest{result.PullRequest.Number, result.PullRequest.URL, result.PullRequest.Operation},
	}
	r.Host, _ = os.Hostname()
	if began := record.Began(result.RunID); !began.IsZero() {
		if info, err := dir.Root().Stat(record.ResultFile); err == nil {
			r.Seconds = info.ModTime().Sub(began).Round(time.Millisecond).Seconds()
		}
	}
	told := !slices.ContainsFunc(result.Warnings, func(w transcript.Warning) bool { return w.Code == noUsage })
	tokens := result.Usage.Input + result.Usage.Output
	if told || tokens == 0 {
		r.Tokens = &tokens
	}
	switch {
	case result.CostUSD != nil && told:
		r.CostUSD = result.CostUSD
	case tokens == 0: // no model was asked
		r.CostUSD = new(float64)
	}
	return r, true, nil
}

// Lost is the report of a run of which nothing came back: what it used nobody knows.
func Lost(claimed Claimed, why error) Report {
	return Report{
		Target: claimed.Target, Template: claimed.Template, Attempt: claimed.Attempt, Outcome: "internal_error", Reason: "no_result",
		Message: fmt.Sprintf("The run left no result: %v.", why), PullRequest: PullRequest{Operation: "none"},
	}
}
