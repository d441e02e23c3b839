package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// campaignTargets is how many targets the test of kills has: 200 with AGENT_CI_TARGETS=200.
func campaignTargets() int {
	if n, err := strconv.Atoi(os.Getenv("AGENT_CI_TARGETS")); err == nil {
		return n
	}
	return 6
}

// children are the processes that a process has started, and has not waited for.
func children(pid int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		raw, _ := os.ReadFile(name)
		_, fields, _ := strings.Cut(string(raw), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(fields, &state, &parent); err == nil && parent == pid {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, child)
		}
	}
	return pids
}

// disturbances are what is done to a starter and its runs, which kill says of what ended the starter.
var disturbances = []struct {
	name string
	do   func(t *testing.T, w *campaigning, starter *exec.Cmd, random *rand.Rand)
}{
	{"the starter is killed", func(_ *testing.T, _ *campaigning, starter *exec.Cmd, _ *rand.Rand) { _ = starter.Process.Kill() }},
	{"all are killed", func(_ *testing.T, _ *campaigning, starter *exec.Cmd, _ *rand.Rand) {
		runs := children(starter.Process.Pid)
		_ = starter.Process.Kill()
		for _, pid := range runs {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}},
	{"a run is killed", func(_ *testing.T, _ *campaigning, starter *exec.Cmd, random *rand.Rand) {
		if runs := children(starter.Process.Pid); len(runs) > 0 {
			_ = syscall.Kill(runs[random.IntN(len(runs))], syscall.SIGKILL)
		}
	}},
	{"the starter is told to end", func(_ *testing.T, _ *campaigning, starter *exec.Cmd, _ *rand.Rand) {
		_ = starter.Process.Signal(syscall.SIGTERM)
	}},
	{"a second starter comes", func(t *testing.T, w *campaigning, _ *exec.Cmd, random *rand.Rand) {
		second, out := w.command("run")
		must.Do(t, second.Start())
		told := time.AfterFunc(time.Duration(random.Int64N(int64(1500*time.Millisecond))), func() { _ = second.Process.Signal(syscall.SIGTERM) })
		err := second.Wait()
		refused := strings.Contains(out.String(), "somebody else works with this ledger (process ")
		spent := second.ProcessState.ExitCode() == 1 && w.over()
		// Else the first one was over: this one was told to end in its place, or found the money spent.
		if inTime := told.Stop(); inTime && err != nil && !refused && !spent {
			t.Errorf("the second starter ended with %v\n%s", err, out)
		}
	}},
}

// over says whether nothing goes on, and nothing may start any more.
func (w *campaigning) over() bool {
	s := w.status()
	return s.Counts[campaign.Running] == 0 && (s.Counts[campaign.Waiting] == 0 || s.Wait.Why == campaign.WaitUSD)
}

// disturbed runs a campaign again and again, and disturbs it at random, until it is over.
func (w *campaigning) disturbed(t *testing.T) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("AGENT_CI_SEED"), 10, 64); err == nil {
		seed = n
	}
	random := rand.New(rand.NewPCG(seed, 0))
	done, all := map[string]int{}, 0
	for all < len(w.plan.Targets) && !w.over() {
		starter, _ := w.command("run")
		must.Do(t, starter.Start())
		ended := make(chan error, 1)
		go func() { ended <- starter.Wait() }()
		for running := true; running; {
			select {
			case <-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond)))):
				each := disturbances[random.IntN(len(disturbances))]
				all++
				done[each.name]++
				each.do(t, w, starter, random)
			case <-ended:
				running = false
			}
		}
	}
	last, _ := w.command("run")
	_ = last.Run() // which tells of runs that failed, too
	s := w.status()
	t.Logf("seed %d, %v: %v, the model was paid %.4f, the ledger has %.4f", seed, done, s.Counts, w.paid(), s.Spent.USD)
	if w.paid() > s.Spent.USD+1e-9 {
		t.Errorf("the model was paid %.4f, and the ledger has %.4f", w.paid(), s.Spent.USD)
	}
	if s.Counts[campaign.Running] > 0 || s.Claimed != (campaign.Claim{}) {
		t.Errorf("claims are left: %v, %v", s.Counts, s.Claimed)
	}
}

// TestKilledCampaignsResume disturbs a campaign until all is done: each target is published once. What
// was killed so often within one start that it was given up a person has run again.
func TestKilledCampaignsResume(t *testing.T) {
	t.Parallel()
	w := newCampaigning(t, campaignTargets(), cheap, campaignFile)
	w.disturbed(t)
	w.onlyGivenUp()
	if resume, out := w.command("resume"); resume.Run() != nil {
		t.Fatal(out)
	}
	w.run()
	w.allOpened()
	if s := w.status(); w.paid() > s.Spent.USD+1e-9 {
		t.Errorf("the model was paid %.4f, and the ledger has %.4f", w.paid(), s.Spent.USD)
	}
}

// onlyGivenUp makes sure that what has no pull request was killed too often, or while its checkout was
// put from one commit to another, which may leave half of either (docs/reference/limits.md): so few are killed
// then that another reason for which runs refuse to go on shows.
func (w *campaigning) onlyGivenUp() {
	w.t.Helper()
	s := w.status()
	for _, target := range s.Targets {
		if r := target.Report; target.Class != campaign.Opened && (r == nil || r.Reason != "no_result" && r.Reason != "sigterm") {
			w.t.Errorf("%s was not given up", target.Key)
		}
	}
	if given := notOpened(s); given != "" {
		w.t.Logf("given up, and to be run again:\n%s%s", given, w.logs())
	}
	refused := 0
	for _, target := range s.Targets {
		raw, _ := os.ReadFile(filepath.Join(w.ledger(), "bump", "runs", fmt.Sprintf("%s-%s-1.log", target.Key, w.plan.Template[:8])))
		if strings.Contains(string(raw), "not_resumable") || strings.Contains(string(raw), "dirty_checkout") {
			refused++
		}
	}
	if refused > len(s.Targets)/100 {
		w.t.Errorf("%d runs could not go on:\n%s", refused, w.logs())
	}
}

// TestKilledCampaignsStayWithinTheirBudget does so with a budget for half of the targets, and answers
// that cost half of what a run may: the last one of a run costs more than what is left.
func TestKilledCampaignsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	budget := 0.16 * float64(campaignTargets()) / 2
	w := newCampaigning(t, campaignTargets(), campaign.Claim{USD: 0.16, Tokens: 130000}, campaignFile+fmt.Sprintf("budget: {usd: %g}\n", budget))
	w.tokens.Store(20000)
	w.disturbed(t)
	w.published()
	s := w.status()
	if w.paid() > budget || s.Spent.USD > budget || s.Wait.Why != campaign.WaitUSD {
		t.Errorf("of %.2f the model was paid %.4f, and the ledger has %.4f; it waits for %q", budget, w.paid(), s.Spent.USD, s.Wait.Why)
	}
}
