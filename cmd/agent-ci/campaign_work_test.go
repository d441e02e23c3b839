package main_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// pod is agent-ci campaign work on the only run of a wave, as a pod runs it: with a report in a second
// place.
func (w *waveCampaign) pod(m matrix, env ...string) (*exec.Cmd, *strings.Builder) {
	cmd, out := w.workshop.command("campaign", "work", "bump.yml", "--wave", filepath.Join(w.ledger(), m.File), "--out", w.results, "--report", w.termination())
	cmd.Env = append(slices.Clone(w.env), append(env, "JOB_COMPLETION_INDEX=0")...)
	return cmd, out
}

func (w *waveCampaign) termination() string { return filepath.Join(w.dir, "termination-log") }

// ends runs a pod to its end, which is of that status, and gives what it reports.
func (w *waveCampaign) ends(m matrix, want int, env ...string) campaign.Report {
	w.t.Helper()
	cmd, out := w.pod(m, env...)
	_ = cmd.Run()
	return w.reported(cmd, out, want)
}

// reported is what a pod that ended said in both places.
func (w *waveCampaign) reported(cmd *exec.Cmd, out *strings.Builder, want int) campaign.Report {
	w.t.Helper()
	if code := cmd.ProcessState.ExitCode(); code != want {
		w.t.Fatalf("it ended with %d, want %d\n%s", code, want, out)
	}
	told, err := campaign.ReadReports(w.results, func(err error) { w.t.Error(err) })
	raw, err2 := os.ReadFile(w.termination())
	if err := errors.Join(err, err2); err != nil || len(told) != 1 {
		w.t.Fatalf("%d reports, %v\n%s", len(told), err, out)
	}
	r, err := campaign.DecodeReport(raw)
	if err != nil || r.RunID != told[0].RunID || r.Outcome != told[0].Outcome {
		w.t.Errorf("%s is not %+v: %v", raw, told[0], err)
	}
	return r
}

// held starts a pod, and waits until it waits for the model. Its requests are answered no more until
// what it gives is called.
func (w *waveCampaign) held(m matrix) (*exec.Cmd, *strings.Builder, func()) {
	w.t.Helper()
	asked, release := make(chan struct{}, 10), make(chan struct{})
	hold := func(r *http.Request) {
		asked <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}
	w.before.Store(&hold)
	cmd, out := w.pod(m)
	must.Do(w.t, cmd.Start())
	<-asked
	return cmd, out, func() {
		w.before.Store(nil)
		close(release)
	}
}

// settled books the run, which opened its pull request within its claim.
func (w *waveCampaign) settled(r campaign.Report) {
	w.t.Helper()
	w.settle()
	w.allOpened()
	s := w.status()
	if s.Runs != 1 || s.Claimed != (campaign.Claim{}) || s.Spent.USD != *r.CostUSD || s.Spent.USD > w.plan.Claim.USD || s.Spent.USD < w.paid()-1e-9 {
		w.t.Errorf("%d runs; %.4f were paid, %.4f are booked, %.4f are claimed, %+v is reported", s.Runs, w.paid(), s.Spent.USD, s.Claimed.USD, r)
	}
}

// A pod is killed whole while it waits for the model. The next one goes on under the claim: it counts
// the answer that was lost at the dearest, and has so much less to spend.
func TestPodResumesAfterKill(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 1, campaignFile)
	m := w.handOut()
	cmd, _, release := w.held(m)
	of := children(cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil || len(of) != 1 {
		t.Fatalf("the runs are %v, %v", of, err)
	}
	_ = syscall.Kill(of[0], syscall.SIGKILL)
	_ = cmd.Wait()
	release()
	r := w.ends(m, 0)
	if asked := w.asked.Load(); asked != 4 { // the lost one, two steps, and the end
		t.Errorf("the model was asked %d times", asked)
	}
	const answer, dearest = 4001 * 2.5 / 1e6, 0.02
	if lost := *r.CostUSD - 3*answer; lost < dearest-1e-9 || lost > dearest+1e-9 {
		t.Errorf("the lost answer is booked as %.4f dollars", lost)
	}
	must.Contain(t, string(must.Get(os.ReadFile(filepath.Join(w.runDirectory(), "transcript.jsonl")))(t)), `"limits":["limits.cost_usd=0.08","limits.tokens=90000"]`)
	w.settled(r)
}

func (w *waveCampaign) runDirectory() string {
	w.t.Helper()
	found, _ := filepath.Glob(filepath.Join(w.results, "runs", "*", "transcript.jsonl"))
	if len(found) != 1 {
		w.t.Fatalf("there are %d run directories", len(found))
	}
	return filepath.Dir(found[0])
}

// Only what started the run is killed: the next start waits for the run, and pays nothing again.
func TestRunOutlivesKilledPodStarter(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 1, campaignFile)
	m := w.handOut()
	cmd, _, release := w.held(m)
	must.Do(t, cmd.Process.Kill())
	_, _ = cmd.Process.Wait() // not for its output, which the run has, too
	next, out := w.pod(m)
	must.Do(t, next.Start())
	release()
	_ = next.Wait()
	r := w.reported(next, out, 0)
	must.Same(t, 3, w.asked.Load(), "the model was asked", "times")
	w.settled(r)
}

// A pod that is told to end says so; nothing is booked before its index is over, and the next one goes
// on.
func TestTerminatedPodResumes(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 1, campaignFile)
	m := w.handOut()
	cmd, out, release := w.held(m)
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	release()
	if r := w.reported(cmd, out, 143); r.Outcome != "cancelled" || r.Reason != "sigterm" {
		t.Errorf("it reports %+v", r)
	}
	w.settled(w.ends(m, 0))
}

// What is wrong on the command line is told before anything is done.
func TestCampaignWorkRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 2, campaignFile)
	m := w.handOut()
	wave := filepath.Join(w.ledger(), m.File)
	w.write("other.yml", strings.Replace(campaignFile, "Bump", "Raise", 1))
	w.write("renamed.yml", strings.Replace(campaignFile, "name: bump", "name: raise", 1))
	w.write("old.json", `{"version": 2}`)
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"work", "bump.yml"}, 2, "it takes --wave and --out"},
		{[]string{"work", "bump.yml", "--wave", wave}, 2, "it takes --wave and --out"},
		{[]string{"work", "bump.yml", "--wave", "none.json", "--out", "out"}, 2, "read the wave"},
		{[]string{"work", "bump.yml", "--wave", "old.json", "--out", "out"}, 2, "hand it out again"},
		{[]string{"work", "bump.yml", "--wave", "bump.yml", "--out", "out"}, 2, "read the wave"},
		{[]string{"work", "bump.yml", "--wave", wave, "--out", "out"}, 2, `there is no run "" in the wave; give --index, from 0 to 1`},
		{[]string{"work", "bump.yml", "--wave", wave, "--out", "out", "--index", "2"}, 2, `there is no run "2"`},
		{[]string{"work", "bump.yml", "--wave", wave, "--out", "out", "--index", "-1"}, 2, `there is no run "-1"`},
		{[]string{"work", "bump.yml", "--wave", wave, "--out", "out", "--index", "one"}, 2, `there is no run "one"`},
		{[]string{"work", "other.yml", "--wave", wave, "--out", "out", "--index", "0"}, 2, "wave 1 is not of this campaign file"},
		{[]string{"work", "renamed.yml", "--wave", wave, "--out", "out", "--index", "0"}, 2, "wave 1 is not of this campaign file"},
		{[]string{"work", "bump.yml", "--wave", wave, "--out", "out", "--index", "0", "--publish", "everywhere"}, 2, "publish"},
		{[]string{"work", "bump.yml", "results"}, 2, "takes a campaign file and nothing else"},
		{[]string{"work", "bump.yml", "--over"}, 2, "--over is not for agent-ci campaign work"},
		{[]string{"status", "bump.yml", "--format", "matrix"}, 2, "--format of agent-ci campaign status is one of table, json, markdown, html, not matrix."},
		{[]string{"statsu"}, 2, `there is no subcommand "statsu"; did you mean status?`},
		{[]string{"plan", "bump.yml", "--format", "matrix", "--publish", "github"}, 2, "--publish of agent-ci campaign plan is for --format kubernetes alone"},
		{[]string{"plan", "bump.yml", "--format", "kubernetes"}, 1, "kubernetes.image is missing in the campaign file"},
		{[]string{"plan", "bump.yml", "--format", "matrix"}, 1, "book its results with agent-ci campaign settle"},
		{[]string{"status", "renamed.yml"}, 1, "raise has no plan in the ledger of "},
		{[]string{"settle", "bump.yml", "none"}, 1, "no such file"},
		{[]string{"settle", "bump.yml", "bump.yml"}, 1, "it is that of kubectl get jobs,pods -o json"},
	} {
		args := append([]string{"campaign"}, test.args...)
		if test.args[0] != "work" {
			args = append(args, "--ledger", w.ledger())
		}
		cmd, out := w.workshop.command(args...)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != test.status || !strings.Contains(out.String(), test.want) {
			t.Errorf("%v: ended with %d, want %d and %q\n%s", test.args, code, test.status, test.want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "out")); err == nil || w.asked.Load() > 0 {
		t.Errorf("something was done: %v, %d requests", err, w.asked.Load())
	}
	must.Same(t, 2, w.status().Counts[campaign.Running])
}

// What is in an address beside the host would be read by everybody who may look at a Job.
func TestManifestHasNoAddressSecrets(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 1, campaignFile+"kubernetes: {image: agent-ci}\n")
	env := w.env
	for name, address := range map[string]string{
		"OPENAI_BASE_URL": "https://dev:hunter2@models.example/v1", "GITHUB_SERVER_URL": "https://hunter2@ghe.example", "GITHUB_API_URL": "https://ghe.example/api/v3?key=hunter2",
	} {
		w.env = append(slices.Clone(env), name+"="+address)
		out, err := w.say("plan", "bump.yml", "--ledger", w.ledger(), "--format", "kubernetes")
		if err == nil || len(out) > 0 || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), name+" is written into the manifest") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	w.env = env
	must.Same(t, 0, w.status().Runs, "runs are claimed")
}

// A variable that sets the model has every run use another one than the claims are of.
func TestVariablesCannotChangeClaims(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 1, campaignFile)
	m := w.handOut()
	env := w.env
	for _, variable := range []string{"AGENT_CI_MODEL_NAME=dear", "AGENT_CI_MODEL_PRICE_OUTPUT=0", "AGENT_CI_AGENTS_MOST=9"} {
		w.env = append(slices.Clone(env), variable)
		name, _, _ := strings.Cut(variable, "=")
		for sub, args := range map[string][]string{"plan": {"--ledger", w.ledger()}, "run": {"--ledger", w.ledger()}, "work": {"--wave", filepath.Join(w.ledger(), m.File), "--index", "0", "--out", w.results}} {
			if out, err := w.say(append([]string{sub, "bump.yml"}, args...)...); err == nil || !strings.Contains(err.Error(), name+" is set, and would change what a run may use") {
				t.Errorf("%s with %s: %v\n%s", sub, variable, err, out)
			}
		}
	}
	w.env = append(slices.Clone(env), "AGENT_CI_MODEL_NAME=dear")
	must.Fail(t, "", must.Err(w.say("work", "bump.yml", "--wave", filepath.Join(w.ledger(), m.File), "--index", "0", "--out", w.results, "--report", w.termination())), "it runs")
	raw, err := os.ReadFile(w.termination())
	if r, err := campaign.DecodeReport(raw); err != nil || r.CostUSD == nil || *r.CostUSD != 0 || !strings.Contains(r.Message, "AGENT_CI_MODEL_NAME is set") {
		t.Errorf("it reports %+v, %v", r, err)
	}
	if err != nil || w.asked.Load() > 0 {
		t.Errorf("a model was asked, or %v", err)
	}
}
