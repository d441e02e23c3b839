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
	{"a second starter comes", func(t *testing.T, w *campaigning, starter *exec.Cmd, _ *rand.Rand) {
		second, out := w.command("run")
		if err := second.Run(); err != nil && !strings.Contains(out.String(), "somebody else works with this ledger (process ") {
			t.Errorf("the second starter ended with %v\n%s", err, out)
		}
	}},
}

// TestKilledCampaignsGoOn disturbs a campaign at random until it is done: each target is published
// once, and what the model was paid stays within the budget.
func TestKilledCampaignsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	targets := campaignTargets()
	w := newCampaigning(t, targets, campaignFile)
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("AGENT_CI_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	done, disturbed := map[string]int{}, 0
	for round := 0; ; round++ {
		starter, out := w.command("run")
		if err := starter.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- starter.Wait() }()
		var err error
		for running := true; running; {
			var disturb <-chan time.Time
			if disturbed < targets {
				disturb = time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
			}
			select {
			case <-disturb:
				each := disturbances[random.IntN(len(disturbances))]
				disturbed++
				done[each.name]++
				each.do(t, w, starter, random)
			case err = <-ended:
				running = false
			}
		}
		s := w.status()
		if s.Counts["waiting"]+s.Counts["running"] == 0 {
			break
		}
		if round > 3*targets {
			t.Fatalf("the campaign does not end: %v, %v\n%s", err, s.Counts, out)
		}
	}
	t.Logf("what was done: %v", done)
	w.run()
	s := w.status()
	paid := float64(w.asked.Load()) * 0.01
	t.Logf("%v, the model was paid %.2f, the ledger has %.2f", s.Counts, paid, s.Spent.USD)
	if paid > s.Spent.USD+1e-9 {
		t.Errorf("the model was paid %.2f, and the ledger has %.2f", paid, s.Spent.USD)
	}
	w.allOpened()
}
