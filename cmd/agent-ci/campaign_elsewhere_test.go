package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// waveCampaign is a campaign whose waves are handed out.
type waveCampaign struct {
	*campaigning
	results string // folder of what came back
}

func newElsewhere(t *testing.T, targets int, file string, set ...func(*campaigning)) *waveCampaign {
	w := newCampaigning(t, targets, cheap, file, set...)
	return &waveCampaign{w, filepath.Join(w.dir, "results")}
}

// say runs a subcommand, and gives what it wrote for programs.
func (w *waveCampaign) say(args ...string) ([]byte, error) {
	cmd, said := w.workshop.command(append([]string{"campaign"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("agent-ci campaign %v: %w\n%s%s", args, err, &out, said)
	}
	return out.Bytes(), nil
}

func (w *waveCampaign) must(out []byte, err error) []byte {
	w.t.Helper()
	must.Do(w.t, err)
	return out
}

// matrix is a wave as a workflow gets it.
type matrix struct {
	Wave, Targets int
	File          string
	AtOnce        int `json:"at_once"`
	Matrix        struct{ Include []campaign.MatrixEntry }
	Wait          campaign.Wait
}

func (w *waveCampaign) handOut() (m matrix) {
	w.t.Helper()
	must.Do(w.t, json.Unmarshal(w.must(w.say("plan", "bump.yml", "--ledger", w.ledger(), "--format", "matrix")), &m))
	return m
}

// work is what the job of a matrix does, or a pod: it knows the campaign file and the wave alone.
func (w *waveCampaign) work(m matrix, index int) ([]byte, error) {
	return w.say("work", "bump.yml", "--wave", filepath.Join(w.ledger(), m.File), "--index", fmt.Sprint(index), "--out", filepath.Join(w.results, fmt.Sprintf("job-%d", index)))
}

// workAll works on a wave, some runs at a time, each of which ends with 0 or one of the statuses.
func (w *waveCampaign) workAll(m matrix, statuses ...int) {
	places, group := make(chan struct{}, m.AtOnce), sync.WaitGroup{}
	for i := range m.Targets {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			_, err := w.work(m, i)
			if exit, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || !slices.Contains(statuses, exit.ExitCode())) {
				w.t.Error(err)
			}
		})
	}
	group.Wait()
}

func (w *waveCampaign) settle(flags ...string) string {
	w.t.Helper()
	return string(w.must(w.say(append([]string{"settle", "bump.yml", "--ledger", w.ledger(), w.results}, flags...)...)))
}

// A wave goes out once, comes back as reports, and what nobody tells of is booked at its claim.
func TestCampaignRunsElsewhere(t *testing.T) {
	t.Parallel()
	w := newElsewhere(t, 4, campaignFile)
	m := w.handOut()
	if m.Wave != 1 || m.Targets != 4 || len(m.Matrix.Include) != 4 || m.AtOnce != 3 {
		t.Fatalf("the wave is %+v", m)
	}
	must.Fail(t, "wave 1 was handed to actions and is not settled", must.Err(w.say("plan", "bump.yml", "--ledger", w.ledger(), "--format", "matrix")), "the wave goes out twice")
	for i := range 3 {
		w.must(w.work(m, i))
	}
	before := w.asked.Load()
	w.must(w.work(m, 0)) // a job that is run once more
	must.Same(t, before, w.asked.Load(), "the model was asked again")
	must.Contain(t, w.settle(), "4 targets: 1 running, 3 pull request open")
	must.Contain(t, w.settle("--over"), "4 targets: 3 pull request open, 1 failed")
	s := w.status()
	lost := s.Targets[3].Report
	if lost.Reason != "no_result" || lost.CostUSD != nil || s.Spent.USD < w.paid()+w.plan.Claim.USD-1e-9 {
		t.Errorf("lost: %+v, spent: %+v", lost, s.Spent)
	}
	if m = w.handOut(); m.Wave != 0 || m.Targets != 0 || m.Matrix.Include == nil {
		t.Errorf("the next wave is %+v", m)
	}
	w.must(w.say("resume", "bump.yml", "--ledger", w.ledger()))
	m = w.handOut()
	w.workAll(m)
	w.settle("--over")
	w.allOpened()
}

var (
	numbers = regexp.MustCompile(`[0-9]+`)
	folders = regexp.MustCompile(`/\S+/runs/`)
)

// normalised is a ledger without times, hosts and order, nor what is made of times: ids and digests.
// Run directories lie wherever they do.
func (w *campaigning) normalised() map[string]int {
	w.t.Helper()
	lines := map[string]int{}
	for _, event := range readEvents(w.t, filepath.Join(w.ledger(), campaign.LedgerFile)) {
		var data map[string]any
		must.Do(w.t, json.Unmarshal(event.Data, &data))
		for _, of := range []string{"host", "seconds", "run_id", "commit", "transcript", "plan", "wave"} {
			delete(data, of)
		}
		if target, is := data["target"].(map[string]any); is {
			delete(target, "sha")
		}
		if pull, is := data["pull_request"].(map[string]any); is {
			delete(pull, "number")
			delete(pull, "url")
		}
		if message, is := data["message"].(string); is {
			data["message"] = numbers.ReplaceAllString(folders.ReplaceAllString(message, "/runs/"), "N")
		}
		lines[string(event.Type)+" "+asJSON(w.t, data)]++
	}
	return lines
}

// mixedFile is a campaign whose targets end as their values say.
const mixedFile = `version: 1
name: bump
targets: {file: targets.txt}
on_existing: update
rollout: {at_once: 4}
job:
  version: 1
  applies_if: test "$KIND" != inapplicable
  task: {prompt: "Bump ${{ target.name }}, kind: ${{ values.kind }}."}
  model: {name: m, stream: false, price: {input: 2.5, output: 2.5}}
  limits: {cost_usd: 0.1, tokens: 100000}
  policy: {env: {set: {KIND: "${{ values.kind }}"}}}
  verify: [{name: log, run: test "$KIND" != red || test ! -e new}]
  verify_attempts: 0
  on_verify_failed: none
`

// mixed is the model of that file.
func mixed(w *campaigning) {
	w.script = func(asked string) (stepwise, int) {
		switch {
		case strings.Contains(asked, "kind: unchanged"):
			return 0, int(w.tokens.Load())
		case strings.Contains(asked, "kind: dear"):
			return 2, 50_000
		}
		return 2, int(w.tokens.Load())
	}
}

// TestLedgersMatchHereAndElsewhere runs a campaign, whose targets end in each way, here and by jobs of a
// matrix.
func TestLedgersMatchHereAndElsewhere(t *testing.T) {
	t.Parallel()
	one := newCampaigning(t, len(kinds), cheap, mixedFile, mixed)
	cmd, out := one.command("run")
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 1 { // some are red
		t.Fatalf("it ended with %d\n%s%s", cmd.ProcessState.ExitCode(), out, one.logs())
	}
	other := newElsewhere(t, len(kinds), mixedFile, mixed)
	other.workAll(other.handOut(), 4, 5)
	other.settle()
	if a, b := one.normalised(), other.normalised(); !maps.Equal(a, b) {
		t.Errorf("here\n%v\nelsewhere\n%v", a, b)
	}
	want := map[campaign.Class]int{campaign.Opened: 1, campaign.Red: 1, campaign.NotApplicable: 1, campaign.NoChange: 1, campaign.Budget: 1}
	for _, w := range []*campaigning{one, other.campaigning} {
		if s := w.status(); !maps.Equal(s.Counts, want) || w.published() != want[campaign.Opened] || s.Claimed != (campaign.Claim{}) {
			t.Errorf("the targets are %v, and %v is claimed; want %v\n%s", s.Counts, s.Claimed, want, out)
		}
	}
}
