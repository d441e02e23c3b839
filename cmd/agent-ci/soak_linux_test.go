package main_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// TestSoak plays runs in which files change at random beside random calls of
// tools, for as long as AGENT_CI_SOAK says ("10m"), or a few that are always the
// same. AGENT_CI_SEED repeats: each run prints its own when it fails, with the
// steps as a case is kept in testdata/soak.
func TestSoak(t *testing.T) {
	t.Parallel()
	programs := besiegers(t)
	plan := soaking(t)
	tally := &tally{outcomes: map[string]int{}}
	t.Logf("AGENT_CI_SEED=%d", plan.seed)
	t.Cleanup(func() { t.Log(tally) })
	for worker := range plan.workers {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			for i := uint64(worker); plan.goesOn(i); i += uint64(plan.workers) {
				seed := plan.seed + i
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { soak(t, programs, seed, tally) })
			}
		})
	}
}

// soakPlan says how many runs there are.
type soakPlan struct {
	seed    uint64
	workers int
	until   time.Time // for ever so many runs
	runs    uint64    // at least
}

func soaking(t *testing.T) soakPlan {
	t.Helper()
	plan := soakPlan{seed: 1, runs: 6, workers: runtime.GOMAXPROCS(0)}
	if text := os.Getenv("AGENT_CI_SOAK"); text != "" {
		length := must.Get(time.ParseDuration(text))(t)
		plan.until, plan.runs, plan.seed = time.Now().Add(length), 0, uint64(rand.Uint32())
	}
	if text := os.Getenv("AGENT_CI_SEED"); text != "" {
		seed := must.Get(strconv.ParseUint(text, 10, 64))(t)
		plan.seed = seed
	}
	return plan
}

func (p soakPlan) goesOn(run uint64) bool {
	return run < max(p.runs, uint64(p.workers)) || time.Now().Before(p.until)
}

// tally is what a soak was made of.
type tally struct {
	mu          sync.Mutex
	runs, steps int
	outcomes    map[string]int
	shrunk      int
}

// mostShrunk bounds how many sequences are shrunk: a fault that shows in each
// would leave no time to look for others.
const mostShrunk = 6

// shrinks says whether one more sequence is to be shrunk.
func (t *tally) shrinks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrunk++
	return t.shrunk <= mostShrunk
}

func (t *tally) add(q sequence, outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.steps += len(q.steps)
	t.outcomes[outcome]++
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d runs of %d steps, which ended as %v", t.runs, t.steps, t.outcomes)
}

// soak plays the sequence of a seed.
func soak(t *testing.T, programs string, seed uint64, tally *tally) {
	q := newSequence(seed)
	users := sandboxtest.Users(t)
	ids := slices.Sorted(maps.Values(users))
	user := ids[seed%uint64(len(ids))]
	found, outcome := q.play(t, programs, user)
	tally.add(q, outcome)
	if len(found) == 0 {
		return
	}
	if !q.beside && outcome != unended && tally.shrinks() {
		q = q.shrink(func(less sequence) bool { return sameKind(found, less.breachesOf(t, programs, user)) })
	}
	t.Errorf("AGENT_CI_SEED=%d, user %d:\n%s\n%s", seed, user, strings.Join(found, "\n"), q)
}

// unended is what a run without a result ended as. It takes too long to be tried
// over and over.
const unended = "/"

// play does the sequence in a new siege, and tells what got out.
func (q sequence) play(t *testing.T, programs string, user int) (found []string, outcome string) {
	t.Helper()
	s := newSiege(t, programs, q.tier, user)
	job := s.job(map[string]any{"verify": []any{map[string]string{"name": "look", "run": lookAround}}, "verify_attempts": 0})
	job["limits"].(map[string]any)["time"] = "20s"
	s.play(job, q.turns(s)...)
	result, _ := s.result()
	if result.Outcome == "internal_error" || result.Outcome == "model_failed" {
		found = append(found, "outcome: "+s.printed)
	}
	return append(found, s.breaches()...), result.Outcome + "/" + result.Reason
}

func (q sequence) breachesOf(t *testing.T, programs string, user int) []string {
	found, _ := q.play(t, programs, user)
	return found
}

// sameKind says whether a breach of one list is of a kind that the other has.
func sameKind(a, b []string) bool {
	kind := func(breach string) string { k, _, _ := strings.Cut(breach, ": "); return k }
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return kind(x) == kind(y) })
	})
}

// mostTrials bounds how many runs it may take to shrink a sequence.
const mostTrials = 60

// shrink leaves steps out as long as the sequence still fails: half of them, then
// a quarter, down to one by one.
func (q sequence) shrink(fails func(sequence) bool) sequence {
	trials := 0
	for size := len(q.steps) / 2; size > 0; size /= 2 {
		for at := 0; at < len(q.steps) && trials < mostTrials; {
			less := q
			less.steps = slices.Delete(slices.Clone(q.steps), at, min(at+size, len(q.steps)))
			trials++
			if len(less.steps) > 0 && fails(less) {
				q = less
				continue
			}
			at += size
		}
	}
	return q
}

// TestSoakCases plays the cases that a soak has found. Without time for all, an ordinary user plays those that
// change permissions, since root ignores these. root plays the others.
func TestSoakCases(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob(filepath.Join("testdata", "soak", "*.txt"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	programs := besiegers(t)
	for _, path := range cases {
		q := must.Get(readSequence(path))(t)
		permissions := slices.ContainsFunc(q.steps, func(step string) bool { return strings.HasPrefix(step, "chmod ") })
		users := sandboxtest.Users(t)
		for name, user := range users {
			if len(users) > 1 && permissions == (user == 0) && !everything() {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt")+"/"+name, func(t *testing.T) {
				t.Parallel()
				found, outcome := q.play(t, programs, user)
				t.Logf("it ended as %s", outcome)
				must.None(t, found, strings.Join(found, "\n"), q)
			})
		}
	}
}

// A soak finds what gets out where nothing confines, and shrinks it to what it
// takes.
func TestSoakFindsAndShrinksBreaches(t *testing.T) {
	t.Parallel()
	programs := besiegers(t)
	noise := sequence{tier: unconfined, steps: []string{"mkdir a", "rename docs a/docs", "read_file keys/id.txt", "write b text", "list_dir ."}}
	fails := func(q sequence) bool {
		return sameKind([]string{"request: "}, q.breachesOf(t, programs, os.Getuid()))
	}
	must.Same(t, []string{"read_file keys/id.txt"}, noise.shrink(fails).steps, "it shrinks to")
}
