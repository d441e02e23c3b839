package campaign

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// clock is a time that the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func monday() *clock { return &clock{time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)} }

// book is a campaign with a ledger.
type book struct {
	*Ledger
	t        *testing.T
	dir      string
	clock    *clock
	campaign *spec.Campaign
	plan     *Plan
}

func newBook(t *testing.T, targets int, set func(*spec.Campaign)) *book {
	t.Helper()
	b := &book{t: t, dir: t.TempDir(), clock: monday(), campaign: &spec.Campaign{Name: "bump", Rollout: spec.Rollout{AtOnce: 4}, OnExisting: "skip"}}
	set(b.campaign)
	b.plan = &Plan{Version: PlanVersion, Campaign: "bump", Template: "one", Claim: Claim{USD: 2, Tokens: 100}}
	for i := range targets {
		t := Target{Repository: fmt.Sprintf("octo-org/r%03d", i), Base: "main"}
		t.Key = KeyOf("bump", t)
		b.plan.Targets = append(b.plan.Targets, t)
	}
	b.open()
	return b
}

func (b *book) open() {
	b.t.Helper()
	var err error
	if b.Ledger, err = Open(b.dir, b.clock.now); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { b.Ledger.Close() })
	must.Do(b.t, b.Plan(b.plan))
}

// room is how many runs may start on this machine.
func (b *book) room() int { return b.Of("bump").FreeSlots(b.campaign) }

// wave claims what may start.
func (b *book) wave(want int, why string) []Claimed {
	b.t.Helper()
	next, wait := b.Next(b.clock.at, b.campaign, b.plan, b.room())
	if len(next) != want || wait.Why != why {
		b.t.Fatalf("%d start and the rest waits for %q (%s), want %d and %q", len(next), wait.Why, wait.Words, want, why)
	}
	claimed := must.Get(b.Claim(b.campaign, b.plan, next, ""))(b.t)
	return claimed
}

func report(c Claimed, outcome, reason string, usd float64) Report {
	tokens := int64(10)
	return Report{Target: c.Target.Key, Template: c.Template, Attempt: c.Attempt, Outcome: outcome, Reason: reason, CostUSD: &usd, Tokens: &tokens}
}

func (b *book) book(r Report) {
	b.t.Helper()
	if settled, err := b.Settle(b.campaign, r); !settled || err != nil {
		b.t.Fatalf("%+v is not booked: %v", r, err)
	}
}

func (b *book) settle(claimed []Claimed, outcome, reason string, usd float64) {
	b.t.Helper()
	for _, c := range claimed {
		b.book(report(c, outcome, reason, usd))
	}
}

func TestNextObeysRolloutAndBudget(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		b := newBook(t, 6, func(*spec.Campaign) {})
		first := b.wave(4, WaitAtOnce)
		b.wave(0, WaitAtOnce)
		b.settle(first[:1], "changed", "pull_request", 1)
		b.wave(1, WaitAtOnce)
		b.settle(first[1:], "no_changes", "nothing", 1)
		b.wave(1, "")
	})
	t.Run("a pilot", func(t *testing.T) {
		b := newBook(t, 3, func(c *spec.Campaign) { c.Pilot = 1 })
		b.settle(b.wave(1, WaitPilot), "changed", "pull_request", 1)
		b.wave(0, WaitPilot)
		must.Do(b.t, b.Approve(b.campaign, b.plan, "dev"))
		b.wave(2, "")
	})
	t.Run("another job needs another pilot", func(t *testing.T) {
		b := newBook(t, 3, func(c *spec.Campaign) { c.Pilot = 1 })
		must.Do(b.t, b.Approve(b.campaign, b.plan, "dev"))
		b.settle(b.wave(3, ""), "changed", "pull_request", 1)
		b.plan.Template = "two"
		must.Do(b.t, b.Plan(b.plan))
		must.Same(t, 1, b.wave(1, WaitPilot)[0].Attempt, "attempt")
	})
	t.Run("dollars", func(t *testing.T) {
		b := newBook(t, 6, func(c *spec.Campaign) { c.Budget.USD = 5 })
		first := b.wave(2, WaitUSD) // of 2 dollars each
		b.settle(first[:1], "changed", "pull_request", 0.5)
		b.wave(1, WaitUSD)
		if s := b.Of("bump"); s.Spent.USD != 0.5 || s.Reserved.USD != 4 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("dollars of a day, of all campaigns", func(t *testing.T) {
		b := newBook(t, 6, func(c *spec.Campaign) { c.Budget.USDPerDay = 5 })
		b.settle(b.wave(2, WaitUSDDay), "changed", "pull_request", 1.5)
		b.campaign.Name, b.plan.Campaign = "other", "other"
		must.Do(b.t, b.Plan(b.plan))
		b.wave(1, WaitUSDDay)
		_, wait := b.Next(b.clock.at, b.campaign, b.plan, 9)
		if b.clock.at = wait.Until; b.clock.at.Hour() != 0 || b.clock.at.Day() != 3 {
			t.Errorf("waits until %v", wait.Until)
		}
		b.wave(1, WaitUSDDay) // what is claimed counts on each day
	})
	t.Run("less than a run", func(t *testing.T) {
		for key, lower := range map[string]func(*spec.Spending){
			"budget.usd":         func(b *spec.Spending) { b.USD = 1 },
			"budget.usd_per_day": func(b *spec.Spending) { b.USDPerDay = 1 }, // no other day has more
			"budget.tokens":      func(b *spec.Spending) { b.Tokens = 1 },
		} {
			b := newBook(t, 1, func(c *spec.Campaign) { lower(&c.Budget) })
			next, wait := b.Next(b.clock.at, b.campaign, b.plan, 9)
			must.Same(t, 0, len(next), key)
			must.Same(t, time.Time{}, wait.Until, key)
			must.Contain(t, wait.Words, "; raise "+key+", or lower limits.")
		}
	})
	t.Run("a cost that nobody told", func(t *testing.T) {
		b := newBook(t, 6, func(c *spec.Campaign) { c.Budget.USD = 5 })
		r := report(b.wave(2, WaitUSD)[0], "changed", "pull_request", 0)
		r.CostUSD, r.Tokens = nil, nil
		b.book(r)
		if s := b.Of("bump"); s.Spent != (Claim{2, 100}) || s.Reserved != (Claim{2, 100}) {
			t.Errorf("%+v", s)
		}
		b.wave(0, WaitUSD)
	})
	t.Run("tokens and runs", func(t *testing.T) {
		b := newBook(t, 6, func(c *spec.Campaign) { c.Budget.Tokens = 250 })
		b.settle(b.wave(2, WaitTokens), "changed", "pull_request", 1)
		b.campaign.Budget = spec.Spending{Runs: 3}
		b.wave(1, WaitRuns)
	})
	t.Run("open pull requests", func(t *testing.T) {
		b := newBook(t, 4, func(c *spec.Campaign) { c.Budget.OpenPRs = 2 })
		r := report(b.wave(2, WaitOpen)[0], "changed", "pull_request", 1)
		r.PullRequest.Number, r.PullRequest.Operation = 7, "created"
		b.book(r)
		b.wave(0, WaitOpen)
		must.Do(b.t, b.RecordPull(b.campaign, r.Target, 7, "merged"))
		b.wave(1, WaitOpen)
	})
	t.Run("a limit of the campaign behind one of a repository", func(t *testing.T) {
		b := newBook(t, 4, func(c *spec.Campaign) { c.Budget.OpenPRsPerRepository, c.Rollout.PerHour = 1, 2 })
		b.plan.Targets[1].Repository = b.plan.Targets[0].Repository
		b.wave(2, WaitPerHour) // which ends by itself
	})
	t.Run("hours and windows", func(t *testing.T) {
		b := newBook(t, 6, func(c *spec.Campaign) {
			c.Rollout.PerHour, c.Rollout.Windows = 2, []string{"Mon 09:00-11:30 UTC", "Tue 22:00-02:00 UTC"}
		})
		b.settle(b.wave(2, WaitPerHour), "changed", "pull_request", 1)
		_, wait := b.Next(b.clock.at, b.campaign, b.plan, 9)
		b.clock.at = wait.Until
		b.settle(b.wave(2, WaitPerHour), "changed", "pull_request", 1)
		b.clock.at = b.clock.at.Add(time.Hour)
		_, wait = b.Next(b.clock.at, b.campaign, b.plan, 9)
		if want := time.Date(2026, 3, 3, 22, 0, 0, 0, time.UTC); wait.Why != WaitWindow || !wait.Until.Equal(want) {
			t.Fatalf("%+v", wait)
		}
		b.clock.at = wait.Until.Add(3 * time.Hour) // behind midnight
		b.wave(2, "")
	})
	t.Run("the same reason", func(t *testing.T) {
		b := newBook(t, 9, func(c *spec.Campaign) { c.StopIf.SameReason, c.Rollout.AtOnce = "2 of 3", 2 })
		first := b.wave(2, WaitAtOnce)
		b.settle(first[:1], "changed", "pull_request", 1)
		b.settle(first[1:], "model_failed", "outage", 1)
		b.settle(b.wave(2, WaitAtOnce)[:1], "model_failed", "outage", 1)
		b.wave(0, WaitStopped)
		b.plan.Targets[1].Blocker = "the repository is archived"
		again, err := b.Resume(b.campaign, b.plan, "outage", "dev")
		if err != nil || len(again) != 1 {
			t.Errorf("run again: %v, %v", again, err)
		}
		b.wave(1, WaitAtOnce)
	})
}

func TestLedgerHasOneWriter(t *testing.T) {
	b := newBook(t, 1, func(*spec.Campaign) {})
	_, err := Open(b.dir, b.clock.now)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("somebody else works with this ledger (process %d on ", os.Getpid())) {
		t.Errorf("the second starter is told %v", err)
	}
	if s, err := Read(b.dir); err != nil || s.Of("bump").Plan == "" {
		t.Errorf("a reader gets %+v, %v", s, err)
	}
}

func TestRefusesAlteredLedger(t *testing.T) {
	b := newBook(t, 3, func(*spec.Campaign) {})
	b.settle(b.wave(3, ""), "changed", "pull_request", 1)
	b.Close()
	path := filepath.Join(b.dir, LedgerFile)
	raw := must.Get(os.ReadFile(path))(b.t)
	must.Do(b.t, os.WriteFile(path, []byte(strings.Replace(string(raw), `"cost_usd":1`, `"cost_usd":0`, 1)), 0o600))
	must.Fail(t, "", must.Err(Open(b.dir, b.clock.now)), "it was opened")
}

// A ledger whose chain is whole may still have been written by somebody else: no event and no plan of it
// leads to another folder.
func TestRefusesTargetNamesOutsideFolder(t *testing.T) {
	const away = "../../../backup"
	for name, tampered := range map[string]struct {
		kind transcript.Type
		data any
	}{
		"a claim":            {TypeClaimed, Claimed{Campaign: "bump", Target: Target{Key: away}, Wave: 1, Attempt: 1}},
		"a claim's template": {TypeClaimed, Claimed{Campaign: "bump", Target: Target{Key: "bump-x"}, Template: "/../../b", Wave: 1, Attempt: 1}},
		"an end":             {TypeSettled, Settled{Campaign: "bump", Report: Report{Target: away, Attempt: 1, Outcome: "changed"}}},
	} {
		b := newBook(t, 1, func(*spec.Campaign) {})
		_, err := b.log.Append(tampered.kind, tampered.data)
		must.Do(b.t, errors.Join(err, b.Close()))
		_, opened := Open(b.dir, b.clock.now)
		_, read := Read(b.dir)
		for _, err := range []error{opened, read} {
			must.Fail(t, "is no name of a target", err, name)
		}
	}
	b := newBook(t, 1, func(*spec.Campaign) {})
	b.plan.Targets[0].Key = away
	must.Do(b.t, b.Plan(b.plan))
	must.Fail(t, "is no name of a target", must.Err(ReadPlan(b.dir, "bump", b.State)), "a plan")
}

// disorder is a campaign whose writer is killed and restarted at random, whose runs are here and
// elsewhere, and whose reports come late, twice or not at all.
type disorder struct {
	*book
	random    *rand.Rand
	here      []Claimed
	elsewhere []Claimed
	out       []Claimed // the wave that is not settled
	back      []Report  // of runs elsewhere, settled or not
	late      []Report  // of runs here
	paid      float64
	published map[string]int // by target and attempt
}

func (d *disorder) step(n int) {
	switch {
	case n < 5: // kill: what ran goes on running
		must.Do(d.t, d.Ledger.Close())
		if d.random.IntN(2) == 0 {
			tear(d.t, d.dir)
		}
		d.open()
	case n < 10:
		if _, err := Open(d.dir, d.clock.now); err == nil {
			d.t.Fatal("a second starter was let in")
		}
	case n < 30:
		claimed := must.Get(d.Claim(d.campaign, d.plan, d.next(), ""))(d.t)
		d.here = append(d.here, claimed...)
	case n < 40:
		d.handOutOnce()
	case n < 42:
		must.Do(d.t, d.Approve(d.campaign, d.plan, "dev"))
	case n < 44 && len(d.late) > 0:
		if settled, err := d.Settle(d.campaign, d.late[d.random.IntN(len(d.late))]); settled || err != nil {
			d.t.Fatalf("a report was booked twice, or %v", err)
		}
	case n < 45:
		must.Get(d.Resume(d.campaign, d.plan, "", "dev"))(d.t)
	case n < 60:
		d.comeBack()
	case n < 80 && len(d.elsewhere) > 0:
		r := d.end(&d.elsewhere)
		if d.random.IntN(8) > 0 { // else it is lost
			d.back = append(d.back, r)
		}
	case len(d.here) > 0:
		r := d.end(&d.here)
		d.late = append(d.late, r)
		if settled, err := d.Settle(d.campaign, r); !settled || err != nil {
			d.t.Fatalf("a report was not booked: %v", err)
		}
	}
}

func (d *disorder) next() []Target {
	next, _ := d.Next(d.clock.at, d.campaign, d.plan, min(d.room(), 1+d.random.IntN(5)))
	return next
}

// handOutOnce hands a wave out; one that is out is found as it was, and keeps others back.
func (d *disorder) handOutOnce() {
	out := d.Of("bump").UnsettledWave()
	if !reflect.DeepEqual(out, d.out) {
		d.t.Fatalf("%+v is out, and the ledger has %+v", d.out, out)
	}
	wave, err := d.Claim(d.campaign, d.plan, d.next(), Kubernetes)
	if out != nil {
		if err == nil || err.Error() != UnsettledWaveError(out).Error() {
			d.t.Fatalf("beside wave %d another one goes out: %+v, %v", out[0].Wave, wave, err)
		}
		return
	}
	must.Do(d.t, err)
	d.elsewhere, d.out = append(d.elsewhere, wave...), wave
}

// end ends a run, which is published and paid once for each attempt.
func (d *disorder) end(of *[]Claimed) Report {
	i := d.random.IntN(len(*of))
	c := (*of)[i]
	*of = slices.Delete(*of, i, i+1)
	d.published[fmt.Sprint(c.Target.Key, " ", c.Attempt)]++
	usd := d.random.Float64() * c.USD
	d.paid += usd
	return report(c, "changed", "pull_request", usd)
}

// comeBack books some of the reports that came back, others of them not for the first time. Once
// nothing runs any more, whatever told nothing is over.
func (d *disorder) comeBack() {
	var some []Report
	for _, r := range d.back {
		if d.random.IntN(3) == 0 {
			other := r
			other.Attempt -= d.random.IntN(2)
			some = append(some, r, other)
		}
	}
	over := len(d.elsewhere) == 0
	must.Get(d.BookReturned(d.campaign, some, func(Claimed) bool { return over }))(d.t)
	if d.Of("bump").UnsettledWave() == nil {
		d.out = nil
	}
}

// away is how many runs of the wave that is out are not settled.
func (d *disorder) away() int {
	return len(slices.DeleteFunc(d.Of("bump").Unsettled(), func(c Claimed) bool { return c.Host == "" }))
}

// TestNeverRepeatsRunsOrOverspends looks after each step at what may never be.
func TestNeverRepeatsRunsOrOverspends(t *testing.T) {
	for seed := range uint64(2) {
		b := newBook(t, 200, func(c *spec.Campaign) { c.Budget.USD, c.Rollout.AtOnce, c.Pilot = 90, 16, 10 })
		d := &disorder{book: b, random: rand.New(rand.NewPCG(seed, 1)), published: map[string]int{}}
		for step := range 1500 {
			b.clock.at = b.clock.at.Add(time.Minute)
			d.step(d.random.IntN(100))
			s := b.Of("bump")
			if s.Spent.USD+s.Reserved.USD > 90.0001 || d.paid > s.Spent.USD+s.Reserved.USD+1e-6 || len(s.Unsettled()) > 16 {
				t.Fatalf("seed %d, step %d: %.4f were paid, %+v", seed, step, d.paid, s)
			}
			if away := d.away(); away < len(d.elsewhere) || len(s.Unsettled()) != len(d.here)+away {
				t.Fatalf("seed %d, step %d: %d run here and %d elsewhere, and the ledger has %d, of which %d are elsewhere", seed, step, len(d.here), len(d.elsewhere), len(s.Unsettled()), away)
			}
		}
		for run, times := range d.published {
			if times > 1 {
				t.Fatalf("seed %d: %s was published %d times", seed, run, times)
			}
		}
		if s := b.Of("bump"); len(d.published) < 40 || s.Waves < 10 || len(d.back) < 4 {
			t.Fatalf("seed %d: only %d targets ran, in %d waves, and %d came back", seed, len(d.published), s.Waves, len(d.back))
		}
		b.Ledger.Close()
	}
}

// tear writes half a line, as a writer that is killed does.
func tear(t *testing.T, dir string) {
	t.Helper()
	f := must.Get(os.OpenFile(filepath.Join(dir, LedgerFile), os.O_WRONLY|os.O_APPEND, 0))(t)
	defer f.Close()
	must.Get(f.WriteString(`{"v":1,"seq":99,"ti`))(t)
}
