package here

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/record"
)

// hangs is a program that ignores being told to end, where the job says so, and leaves nothing.
const hangs = `#!/bin/sh
case "$*" in
*hangs*) trap '' TERM; exec sleep 1000;;
esac
echo "it cannot start" >&2
exit 1
`

const campaignFile = `version: 1
name: bump
targets: {file: targets.txt}
rollout: {at_once: 2}
job: {version: 1, task: {prompt: x}, limits: {time: 1s}}
`

// hanging is a campaign over repositories whose runs are that program.
func hanging(t *testing.T, names ...string) (Schedule, *strings.Builder) {
	t.Helper()
	dir, ends := t.TempDir(), &strings.Builder{}
	program := filepath.Join(dir, "program")
	must.Do(t, os.WriteFile(program, []byte(hangs), 0o700))
	c := must.Get(spec.Load("bump.yml", []byte(campaignFile), nil))(t)
	ledger := must.Get(campaign.Open(filepath.Join(dir, "ledger"), time.Now))(t)
	t.Cleanup(func() { _ = ledger.Close() })
	plan := &campaign.Plan{Version: campaign.PlanVersion, Campaign: "bump", Template: "0123456789", Claim: campaign.Claim{USD: 2, Tokens: 5_000_000}}
	for _, name := range names {
		target := campaign.Target{Repository: "octo/" + name, Base: "main", SHA: strings.Repeat("0", 40)}
		target.Key = campaign.KeyOf("bump", target)
		plan.Targets = append(plan.Targets, target)
	}
	must.Do(t, ledger.Plan(plan))
	return Schedule{Ledger: ledger, Plan: plan, Options: Options{
		Campaign: c, Template: plan.Template, Log: ends, Folder: campaign.Folder(filepath.Join(dir, "ledger"), "bump"), Command: Command{Program: program, Environ: os.Environ()},
		Now: time.Now, ExitGrace: 100 * time.Millisecond, Resumable: func(*record.Directory, string) error { return errors.New("it cannot") },
	}}, ends
}

func TestHungProcessDelaysNoOther(t *testing.T) {
	t.Parallel()
	var o Schedule
	var ends *strings.Builder
	isLast := false
	for margin := time.Duration(0); !isLast && margin < time.Minute; margin = 2*margin + time.Second { // a busy machine takes longer for the others
		o, ends = hanging(t, "hangs", "one", "two", "three")
		o.TimeMargin = margin
		must.Do(t, Run(t.Context(), o))
		lines := strings.Split(strings.TrimSpace(ends.String()), "\n")
		isLast = strings.HasPrefix(lines[len(lines)-1], "bump-hangs-")
	}
	if !isLast || strings.Count(ends.String(), " internal_error/no_result: ") != 4 {
		t.Errorf("ended: %s", ends)
	}
	hung := o.Ledger.Of("bump").TargetState(o.Plan.Targets[0].Key).Last
	if hung.CostUSD == nil || *hung.CostUSD != 0 || !strings.Contains(hung.Message, errHung.Error()) {
		t.Errorf("the report of the hung one is %+v", hung)
	}
}

// A forge that fails for a while delays targets of a campaign that waits, and ends others.
func TestWaitsForForge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails int
		error forge.Error
		waits bool
		ends  bool // with the error
	}{
		"without waiting":   {1, forge.Error{Kind: forge.Unavailable}, false, true},
		"an outage":         {3, forge.Error{Kind: forge.Unavailable}, true, false},
		"a rate limit":      {3, forge.Error{Kind: forge.RateLimited}, true, false},
		"a refusal":         {1, forge.Error{Kind: forge.Unauthorized}, true, true},
		"a certificate":     {1, forge.Error{Kind: forge.Unavailable, Err: &tls.CertificateVerificationError{}}, true, true},
		"a longer limit":    {1, forge.Error{Kind: forge.RateLimited, RetryAfter: 7 * time.Hour}, true, true},
		"an endless outage": {1000, forge.Error{Kind: forge.Unavailable}, true, true},
	} {
		play := func(t *testing.T, hasPull bool, doing string) {
			o, log := hanging(t, "one", "two", "three")
			if hasPull { // whose state is asked for first
				must.Do(t, o.Ledger.RecordPull(o.Campaign, o.Plan.Targets[0].Key, 1, "open"))
			}
			started, looks := time.Now(), atomic.Int64{} // each look at the clock is 20 minutes later
			o.Now = func() time.Time { return started.Add(time.Duration(looks.Add(1)) * 20 * time.Minute) }
			o.Wait = c.waits
			c.error.Message = "GitHub is down"
			o.Campaign.OnExisting, o.Forge = "skip", &failing{fails: c.fails, with: &c.error}
			err := Run(t.Context(), o)
			if c.ends {
				must.Fail(t, doing+": GitHub is down", err)
				return
			}
			must.Do(t, err)
			must.Same(t, c.fails, strings.Count(log.String(), doing+": GitHub is down; trying again at "), log)
			must.Same(t, 3, strings.Count(log.String(), " internal_error/no_result: "), log)
		}
		t.Run(name, func(t *testing.T) { play(t, false, "look for open pull requests") })
		t.Run(name+", at the start", func(t *testing.T) { play(t, true, "ask for the states of pull requests") })
	}
}

// failing is a forge without pull requests. Its first requests fail.
type failing struct {
	pulls.Forge
	fails, asked int
	with         error
}

func (f *failing) Survey(_ context.Context, questions []forge.Question) ([]forge.Finding, error) {
	if f.asked++; f.asked <= f.fails {
		return nil, f.with
	}
	return make([]forge.Finding, len(questions)), nil
}

// A process that an earlier start left and that hangs is left alone: its run is settled at the claim.
func TestReportsProcessLeftByEarlierStart(t *testing.T) {
	t.Parallel()
	o, _ := hanging(t, "one")
	claimed := must.Get(o.Ledger.Claim(o.Campaign, o.Plan, o.Plan.Targets, ""))(t)
	w := &work{Options: o.Options, claimed: claimed[0], job: loadTargetJob(o.Campaign, claimed[0].Target)}
	log := must.Get(w.lock(t.Context()))(t)
	left := exec.Command("sleep", "1000")
	left.Stdout = log
	must.Do(t, errors.Join(left.Start(), log.Close()))
	defer func() { _ = left.Process.Kill(); _ = left.Wait() }()
	o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	must.Do(t, Run(t.Context(), o))
	r := o.Ledger.Of("bump").TargetState(claimed[0].Target.Key).Last
	if r == nil || r.CostUSD != nil || !strings.Contains(r.Message, "does not end; kill it before you have the target run again, its log is "+log.Name()) {
		t.Errorf("it ended in %+v", r)
	}
	must.Do(t, left.Process.Signal(syscall.Signal(0)), "it was killed")
}

// Lines of a log show what strangers wrote, and no more of it than a line.
func TestPrintReportWritesOneHarmlessLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	PrintReport(&out, campaign.Report{Target: "bump-one", Outcome: "changed", Reason: "pull_request", Message: "a\nb\x1b[2J\x07" + strings.Repeat("long ", 400)})
	if got := out.String(); !strings.HasPrefix(got, "bump-one changed/pull_request: a b") || strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\x07") || len(got) > 600 {
		t.Errorf("the log is %q", got)
	}
}
