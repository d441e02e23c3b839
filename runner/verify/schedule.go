package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// known gives the result of a check that is not to be run; ok is false for one that is.
type known func(i int) (r result, ok bool)

// runOn runs the checks on a tree, as many at once as the job lets, and gives their
// results in the order of the job.
func (c Checks) runOn(ctx context.Context, s suite, given known) ([]result, error) {
	s.lanes = c.lanes()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := round{checks: c, results: make([]result, len(c.Job.Verify)), stage: make([]stage, len(c.Job.Verify)), ended: make(chan end)}
	for i := range r.results {
		if of, ok := given(i); ok {
			r.results[i], r.stage[i] = of, over
		}
	}
	var failed error
	for running := 0; ; running-- {
		for ; failed == nil && running < s.lanes && r.start(ctx, s); running++ {
		}
		if running == 0 {
			return r.results, failed
		}
		e := <-r.ended
		r.results[e.check], r.stage[e.check] = e.result, over
		if e.err != nil && failed == nil {
			failed = e.err
			cancel()
		}
	}
}

// lanes are how many checks run at once. Without namespaces one sandbox can't tell
// what another one left running from what is its own.
func (c Checks) lanes() int {
	if !c.Sandboxes.Apart() {
		return 1
	}
	return max(c.Job.VerifyParallel, 1)
}

// round is one way through the checks, of which some run.
type round struct {
	checks  Checks
	results []result
	stage   []stage
	ended   chan end
}

type stage int

const (
	waiting stage = iota
	begun
	over
)

type end struct {
	check  int
	result result
	err    error
}

// start starts the first check that waits for nothing, and says whether there was one.
// Those that can't be run any more get their results.
func (r *round) start(ctx context.Context, s suite) bool {
	for i := range r.stage {
		if r.stage[i] != waiting || !r.settled(i) {
			continue
		}
		if r.unmet(i) {
			r.results[i], r.stage[i] = result{notRun: transcript.NeedsUnmet}, over
			return r.start(ctx, s) // one before it may wait for that
		}
		r.stage[i] = begun
		go func() {
			of, err := r.checks.untilGreen(ctx, s, i)
			r.ended <- end{i, of, err}
		}()
		return true
	}
	return false
}

// settled says whether all that a check needs is over.
func (r *round) settled(i int) bool {
	return !slices.ContainsFunc(r.checks.needs(i), func(of int) bool { return r.stage[of] != over })
}

// unmet says whether something that a check needs was run and is not green.
func (r *round) unmet(i int) bool {
	return slices.ContainsFunc(r.checks.needs(i), func(of int) bool {
		need := r.results[of]
		return need.notRun != transcript.NotConcerned && !transcript.Good(need.state, r.checks.Job.Verify[of].Flaky)
	})
}

// needs are the checks that a check needs. A name that no check has is a mistake of
// the job, which no run has.
func (c Checks) needs(i int) (of []int) {
	all := c.Job.Verify
	for _, name := range all[i].Needs {
		if at := slices.IndexFunc(all, func(c job.VerifyCheck) bool { return c.Name == name }); at >= 0 {
			of = append(of, at)
		}
	}
	return of
}

// Concerns says whether a check is for a change that touches such paths.
func Concerns(check job.VerifyCheck, paths []string) (bool, error) {
	if len(check.When) == 0 {
		return true, nil
	}
	for _, path := range paths {
		if fits, err := policy.Fits(check.When, path); err != nil || fits {
			return fits, err
		}
	}
	return false, nil
}

func pathsOf(change *gitops.ChangeSet) (paths []string) {
	for _, f := range change.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// concerned says of each check whether it is for a change.
func (c Checks) concerned(change *gitops.ChangeSet) ([]bool, error) {
	is, paths := make([]bool, len(c.Job.Verify)), pathsOf(change)
	for i, check := range c.Job.Verify {
		var err error
		if is[i], err = Concerns(check, paths); err != nil {
			return nil, fmt.Errorf("verify[%d].when: %w", i, err)
		}
	}
	return is, nil
}

// onlyConcerned has the checks run that are for a change.
func onlyConcerned(is []bool) known {
	return func(i int) (result, bool) { return result{notRun: transcript.NotConcerned}, !is[i] }
}

// later has those checks wait that may be for no change, with those that need them: most
// changes have nothing for them, so that their baseline is taken once there is one that has.
func (c Checks) later(i int) (result, bool) {
	return result{notRun: transcript.NotConcerned}, c.waits(i)
}

func (c Checks) waits(i int) bool {
	return len(c.Job.Verify[i].When) > 0 || slices.ContainsFunc(c.needs(i), c.waits)
}

// lateBaseline takes the baseline of the checks that waited for a change that is for
// them, and puts it into their rows.
func (c Checks) lateBaseline(ctx context.Context, attempt int, base gitops.Base, is []bool, rows []transcript.VerifyRow) error {
	waits := func(i int) bool { return is[i] && rows[i].Before == "" && rows[i].NotRun == transcript.NotConcerned }
	if !slices.ContainsFunc(indexes(rows), waits) {
		return nil
	}
	s := suiteOf(attempt, base, base.Tree)
	s.kind, s.notOwn, s.why = fmt.Sprintf("base-%d", attempt), true, onTheBase
	results, err := c.onBase(ctx, s, func(i int) (result, bool) { return result{state: rows[i].Before, notRun: rows[i].NotRun}, !waits(i) })
	if err != nil {
		return err
	}
	for i, r := range results {
		if waits(i) {
			rows[i].Before, rows[i].From = r.state, r.from
			if err := c.show(ctx, &rows[i], i, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// onTheBase is why checks run on the base after the baseline.
const onTheBase = "on the base"

func indexes(rows []transcript.VerifyRow) []int {
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	return all
}
