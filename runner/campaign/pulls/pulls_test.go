package pulls_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// Of five pull requests one cannot be closed, one was merged, one closed by a person, one has work of somebody else.
func TestClosesOnlyUntouchedPullRequests(t *testing.T) {
	server := forgetest.New(t, forgetest.Options{})
	repository := server.AddRepository("octo-org", "widgets")
	work := gittest.New(t)
	work.Git("commit", "--quiet", "--allow-empty", "--message=begin")
	repository.Receive(work.Dir)
	client := must.Get(github.New(github.Options{APIURL: server.APIURL, Token: server.Token}))(t)
	ledger := must.Get(campaign.Open(t.TempDir(), time.Now))(t)
	defer ledger.Close()
	c := &spec.Campaign{Name: "bump", Rollout: spec.Rollout{AtOnce: 9}}
	plan := &campaign.Plan{Version: campaign.PlanVersion, Campaign: "bump", Template: "one"}
	keys := []string{"ours", "merged", "closed", "theirs", "refused"}
	for _, key := range keys {
		plan.Targets = append(plan.Targets, campaign.Target{Key: key, Repository: "octo-org/widgets", Base: "main"})
	}
	must.Do(t, ledger.Plan(plan))
	claimed := must.Get(ledger.Claim(c, plan, plan.Targets, ""))(t)
	for i, key := range keys {
		work.Git("commit", "--quiet", "--allow-empty", "--message="+key)
		work.Git("push", "--quiet", repository.Dir, "HEAD:refs/heads/agent-ci/"+key)
		pull := must.Get(client.Repository("octo-org/widgets").CreatePullRequest(t.Context(), forge.NewPullRequest{Title: key, Head: "agent-ci/" + key, Base: "main"}))(t)
		r := campaign.LostReport(claimed[i], context.Canceled)
		r.Outcome, r.Commit, r.Branch = "changed", work.Git("rev-parse", "HEAD"), "agent-ci/"+key
		r.PullRequest.Number, r.PullRequest.URL, r.PullRequest.Operation = pull.Number, pull.URL, "created"
		must.Get(ledger.Settle(c, r))(t)
	}
	repository.SetPullRequest(2, func(p *forgetest.PullRequest) { p.State, p.Merged = "closed", true })
	repository.SetPullRequest(3, func(p *forgetest.PullRequest) { p.State = "closed" })
	plan.Targets[0], plan.Targets[4] = plan.Targets[4], plan.Targets[0] // the refused one comes first
	work.Git("commit", "--quiet", "--allow-empty", "--message=by hand")
	work.Git("push", "--quiet", repository.Dir, "HEAD:refs/heads/agent-ci/theirs")

	before := len(server.Requests())
	must.Do(t, pulls.Refresh(t.Context(), client, ledger, c, plan))
	must.Same(t, 1, len(server.Requests())-before)
	states := func() map[string]string {
		got := map[string]string{}
		for _, key := range keys {
			got[key] = ledger.Of("bump").TargetState(key).Pull.State
		}
		return got
	}
	must.Same(t, map[string]string{"ours": "open", "merged": "merged", "closed": "closed", "theirs": "open", "refused": "open"}, states())
	drop := func(ctx context.Context, repository, branch string) error {
		return client.Setup(repository).DeleteBranch(ctx, branch)
	}
	server.On("PATCH", "/repos/octo-org/widgets/pulls/5", forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "Repository was archived so is read-only."}`}, 1)
	ctx, stop := context.WithCancel(t.Context())
	dropLast := func(ctx context.Context, repository, branch string) error {
		defer stop() // a signal
		return drop(ctx, repository, branch)
	}
	ended, err := pulls.Close(ctx, client, ledger, c, plan, dropLast)
	if err != nil || len(ended) != 3 || ended[0].Failure == nil || ended[0].State != "open" || ended[1].KeptReason != "its last commit is not one of a run" || ended[2].State != "closed" {
		t.Errorf("got %+v, %v", ended, err)
	}
	must.Same(t, map[string]string{"ours": "closed", "merged": "merged", "closed": "closed", "theirs": "open", "refused": "open"}, states())
	if all := repository.PullRequests(); all[0].State != "closed" || all[3].State != "open" {
		t.Errorf("on the forge: %+v", all)
	}
	must.Same(t, "agent-ci/closed\nagent-ci/merged\nagent-ci/refused\nagent-ci/theirs", (gittest.Repo{T: t, Dir: repository.Dir}).Git("for-each-ref", "--format=%(refname:short)", "refs/heads/agent-ci"), "branches left")
	if ended, err = pulls.Close(t.Context(), client, ledger, c, plan, drop); err != nil || len(ended) != 2 || ended[0].State != "closed" {
		t.Errorf("once more: %+v, %v", ended, err)
	}
}
