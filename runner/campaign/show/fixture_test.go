package show

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// TestLedgerMatchesTestdata keeps a campaign in testdata that has all that is to be shown, with texts of
// strangers in it.
func TestLedgerMatchesTestdata(t *testing.T) {
	raw := must.Get(os.ReadFile("testdata/bump.yml"))(t)
	c := must.Get(spec.Load("bump.yml", raw, nil))(t)
	dir := t.TempDir()
	record(t, dir, c)
	for _, name := range []string{campaign.LedgerFile, filepath.Join("bump", campaign.PlanFile)} {
		got := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		golden.Compare(t, filepath.Join("testdata", "ledger", name), got)
	}
}

// record has a campaign of 40 targets go on over two days.
func record(t *testing.T, dir string, c *spec.Campaign) {
	t.Helper()
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	ledger := must.Get(campaign.Open(dir, func() time.Time { return at }))(t)
	defer ledger.Close()
	plan := &campaign.Plan{Version: campaign.PlanVersion, Campaign: "bump", Template: "5ab1", Made: at, Limits: campaign.Claim{USD: 2, Tokens: 1_500_000}, Claim: campaign.Claim{USD: 2.5, Tokens: 2_000_000}}
	for i := range 40 {
		target := campaign.Target{Repository: fmt.Sprintf("octo-org/service-%02d", i), Base: "main", SHA: fmt.Sprintf("%040d", i)}
		switch {
		case i == 7:
			target.Path = "services/<img src=x onerror=alert(1)>"
		case i == 9:
			target.Issue = 12
		case i >= 38:
			target.Blocker = "the repository is archived"
		}
		target.Key = campaign.KeyOf("bump", target)
		plan.Targets = append(plan.Targets, target)
	}
	must.Do(t, ledger.Plan(plan))

	ends := []campaign.Report{
		{Outcome: string(outcome.Changed), Reason: "pull_request", Message: "The pull request is open."},
		{Outcome: string(outcome.NoChanges), Reason: "nothing_to_do"},
		{Outcome: string(outcome.Skipped), Reason: campaign.ReasonNotApplicable},
		{Outcome: string(outcome.VerifyFailed), Reason: "checks_failed", Message: "The check <script>alert(1)</script> is red; [look](https://evil.example/x)."},
		{Outcome: string(outcome.BudgetExceeded), Reason: "cost"},
		{Outcome: string(outcome.ModelFailed), Reason: "rate_limited", Message: "\u202eThe model \x1b[2J is busy."},
	}
	number := 0
	for round := 0; round < 7; round++ {
		at = at.Add(20 * time.Minute)
		next, _ := ledger.Next(at, c, plan, 4)
		claimed := must.Get(ledger.Claim(c, plan, next, ""))(t)
		if round == 6 { // they run yet
			break
		}
		for _, claim := range claimed {
			at = at.Add(3 * time.Minute)
			r := ends[number%len(ends)]
			usd, tokens := 0.4+float64(number%5)/10, int64(100_000+number)
			r.RunID, r.Target, r.Template, r.Attempt, r.CostUSD, r.Tokens = fmt.Sprintf("run-%d", number), claim.Target.Key, claim.Template, claim.Attempt, &usd, &tokens
			if r.Outcome == string(outcome.Changed) {
				r.Commit, r.Branch = fmt.Sprintf("%040d", number), "agent-ci/"+claim.Target.Key
				r.PullRequest.Number, r.PullRequest.Operation = 100+number, "created"
				r.PullRequest.URL = fmt.Sprintf("https://github.com/%s/pull/%d", claim.Target.Repository, 100+number)
			}
			must.Get(ledger.Settle(c, r))(t)
			if number == 6 {
				must.Do(t, ledger.RecordPull(c, claim.Target.Key, 106, "merged"))
			}
			number++
		}
		if round == 0 {
			must.Do(t, ledger.Approve(c, plan, "octocat"))
		}
		if round == 3 {
			at = at.Add(18 * time.Hour)
		}
	}
}
