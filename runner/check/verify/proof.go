package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
	"github.com/agent-ci/agent-ci/runner/place/services"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

const (
	// proofTimes limits the time of a check's proof, as a multiple of the check's timeout.
	proofTimes = 5
	// maxBaseTests limits the tests of the base that are listed for one check.
	maxBaseTests = 50
)

// prove runs the red proof of each proving check, and examines changed scripts of checks. It adds the results
// to the table. It does nothing if the table does not pass, because the agent gets the change back first.
func (c Checks) prove(ctx context.Context, attempt int, change *gitops.ChangeSet, table *transcript.Verify) error {
	if !table.Passed {
		return nil
	}
	var t testFiles
	if slices.ContainsFunc(c.Job.Verify, job.VerifyCheck.ProvesTests) {
		var err error
		if t, err = c.testFilesOf(change); err != nil {
			return err
		}
	}
	touchesTests := len(t.changedTests)+len(t.baseTests)+len(t.changedData) > 0
	for i, check := range c.Job.Verify {
		row := &table.Rows[i]
		p := proof{Checks: c, check: i, row: *row, attempt: attempt, change: change, scripts: c.changedScripts(i, *row, change)}
		provesTests := check.ProvesTests() && touchesTests && row.After != ""
		if !provesTests && len(p.scripts) == 0 {
			continue
		}
		if provesTests {
			p.tests, p.locator = t, testsource.NewLocator(c.Workspace.Checkout(), t.changedTests)
			p.scripts = slices.DeleteFunc(p.scripts, func(path string) bool { return slices.Contains(t.restorePaths, path) })
		}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("prove the tests by %s: %w", check.Name, err)
		}
		p.dropHelpers()
		slices.SortStableFunc(p.classes, func(a, b transcript.Proof) int { return strings.Compare(a.File, b.File) })
		row.Proof, row.ProofMore, row.OldTests, row.OldTestsUnknown = p.classes, p.tests.unjudgedCount, p.oldTests, p.oldTestsUnknown
	}
	return nil
}

// proof judges the tests of a change by one check.
type proof struct {
	Checks
	check   int
	row     transcript.VerifyRow // the check's results on the change
	attempt int
	change  *gitops.ChangeSet
	tests   testFiles
	scripts []string // files that the check runs and the change altered

	locator         *testsource.Locator  // for the judged test files
	changeResults   *testresults.Results // the test results on the change, if the check is red there
	classes         []transcript.Proof
	oldTests        []transcript.OldTest // tests and scripts of the base that the change removed or breaks
	oldTestsUnknown string               // why oldTests is incomplete
	log             string               // of the run on the base that the classes are from
}

// errProofTimeOver reports that the time for the proof is over.
var errProofTimeOver = errors.New("the time for it was over")

// run runs the steps of the proof, within the time limits of the proof and the run. If the time is
// over, the remaining classes are unknown.
func (p *proof) run(whole context.Context) error {
	end := time.Now().Add(proofTimes * time.Duration(p.checkSpec().Timeout))
	if !p.ProofDeadline.IsZero() && p.ProofDeadline.Before(end) {
		end = p.ProofDeadline
	}
	ctx, cancel := context.WithDeadlineCause(whole, end, errProofTimeOver)
	defer cancel()
	for _, judge := range []func(context.Context) error{p.judgeBaseTests, p.judgeScripts} {
		why, err := whyUnjudged(whole, judge(ctx))
		if err != nil {
			return err
		}
		p.oldTestsUnknown = cmp.Or(why, p.oldTestsUnknown)
	}
	why, err := whyUnjudged(whole, p.classify(ctx))
	if why != "" {
		p.setRestUnknown(why)
	}
	return err
}

// whyUnjudged returns the reason if a step of a proof ended without a result because of err: no time was left, or
// a service was missing. For any other err, including nil, why is "" and other is err. whole is the context of
// the run.
func whyUnjudged(whole context.Context, err error) (why string, other error) {
	switch {
	case errors.Is(err, errProofTimeOver):
		return errProofTimeOver.Error(), nil
	case services.IsNotReady(err) && whole.Err() == nil:
		return "a service that the check needs did not get ready there", nil
	}
	return "", err
}

// checkSpec returns the check as the job defines it.
func (p *proof) checkSpec() job.VerifyCheck { return p.Job.Verify[p.check] }

// setClass sets the class of a file.
func (p *proof) setClass(file testsource.File, of transcript.Proof) {
	of.File, of.Log = file.Path, p.log
	p.classes = append(p.classes, of)
}

// setRestUnknown sets the class of the test files without a class to unknown. note says why.
func (p *proof) setRestUnknown(note string) {
	p.log = ""
	has := map[string]bool{}
	for _, done := range p.classes {
		has[done.File] = true
	}
	for _, f := range p.tests.changedTests {
		if !has[f.Path] {
			p.setClass(f, transcript.Proof{Class: transcript.Unknown, Note: note, Shared: len(p.tests.changedTests) > 1})
		}
	}
}

// classify runs the check on the base with the change's tests, and classifies the test files.
func (p *proof) classify(ctx context.Context) error {
	var files []testsource.File
	for _, f := range p.tests.changedTests {
		if f.NotRegular {
			p.setClass(f, transcript.Proof{Class: transcript.NoTests, Note: "it is no file"})
			continue
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil
	}
	switch p.row.After {
	case transcript.FlakyState:
		p.setClasses(files, transcript.FlakyProof, "the check is flaky on the change")
		return nil
	case "timeout":
		p.setClasses(files, transcript.Unknown, "the check did not end in time, on the base and on the change")
		return nil
	case "red":
		now, err := p.readTests(ctx, p.checkSpec(), p.row.Log)
		if err != nil {
			return err
		}
		p.changeResults = now
	}
	seen, err := p.runOnBaseWith(ctx, "", p.tests.overlayPaths)
	if err != nil {
		return err
	}
	p.log = seen.log
	switch seen.state {
	case "timeout":
		p.setClasses(files, transcript.Unknown, "with it on the base the check did not end in time")
	case "green":
		for _, f := range files {
			class, note := p.greenClass(f, seen)
			p.setClass(f, transcript.Proof{Class: class, Note: note})
		}
	default:
		return p.classifyByNames(ctx, files, seen)
	}
	return nil
}

// setClasses sets one class for several files.
func (p *proof) setClasses(files []testsource.File, class, note string) {
	for _, f := range files {
		p.setClass(f, transcript.Proof{Class: class, Note: note, Shared: len(files) > 1})
	}
}

// greenClass returns the class of a file with which the check is green on the base, and a note or "".
func (p *proof) greenClass(f testsource.File, seen treeResult) (class, note string) {
	switch {
	case f.Known && !f.HasTests():
		return transcript.NoTests, ""
	case p.didNotRun(f, seen):
		return transcript.Unknown, notRunHere
	case ranNoTests(seen.output):
		return transcript.NoTests, ""
	}
	return transcript.NotRed, ""
}

// notRunHere is the note for a file that another check runs.
const notRunHere = "not run by this check"

// didNotRun reports whether every run lists what it ran, and lacks the file.
func (p *proof) didNotRun(f testsource.File, seen treeResult) bool {
	for _, run := range seen.runs {
		if !p.locator.ListsOthersOnly(run.results, f) {
			return false
		}
	}
	return true
}

// dropHelpers removes files without tests, which are helpers if other files are red on the base.
func (p *proof) dropHelpers() {
	isRed := func(of transcript.Proof) bool {
		return of.Class == transcript.Proven || of.Class == transcript.LoadError
	}
	if !slices.ContainsFunc(p.classes, isRed) {
		return
	}
	hasNoTests := map[string]bool{}
	for _, f := range p.tests.changedTests {
		hasNoTests[f.Path] = !f.NotRegular && !f.HasTests()
	}
	provesNothing := []string{transcript.NotRed, transcript.NoTests, transcript.Unknown}
	p.classes = slices.DeleteFunc(p.classes, func(of transcript.Proof) bool {
		return hasNoTests[of.File] && slices.Contains(provesNothing, of.Class)
	})
}

// classifyByNames classifies files by the tests that a red output names. The remaining files share
// one class, because a run for each file would take too long.
func (p *proof) classifyByNames(ctx context.Context, files []testsource.File, seen treeResult) error {
	for _, run := range seen.runs {
		if err := p.locator.Locate(ctx, run.failures); err != nil {
			return err
		}
	}
	var rest []testsource.File
	for _, f := range files {
		of := p.classOf(seen, f)
		switch {
		case of.Class != "":
			p.setClass(f, of)
		case p.didNotRun(f, seen):
			p.setClass(f, transcript.Proof{Class: transcript.Unknown, Note: notRunHere})
		case p.allTestsPassed(seen, f):
			p.setClass(f, transcript.Proof{Class: transcript.NotRed})
		default:
			rest = append(rest, f)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	namesOthers := len(rest) < len(files)
	if seen.state == transcript.FlakyState && !namesOthers {
		p.setClasses(rest, transcript.FlakyProof, "")
		return nil
	}
	green, err := p.isGreenOnBase(ctx)
	switch {
	case err != nil:
		return err
	case !green:
		p.setClasses(rest, transcript.Unknown, "the check is red on the base without it too, and its output names no tests of it")
	case namesOthers:
		p.setClasses(rest, transcript.Unknown, "the output names tests of other files, and none of it")
	case len(files) == 1:
		p.setClass(rest[0], transcript.Proof{Class: seen.classByState()})
	default:
		p.setClasses(rest, seen.classByState(), "the output is not matched to files")
	}
	return nil
}

// isGreenOnBase reports whether the check is green on the base alone. Otherwise a red run with the change's
// tests proves nothing. If the baseline is cached or of another base, the check runs again.
func (p *proof) isGreenOnBase(ctx context.Context) (bool, error) {
	if p.row.CachedFrom == "" && !p.onOtherBase {
		return p.row.Before == "green", nil
	}
	seen, err := p.runOnBaseWith(ctx, "-none", nil)
	return seen.state == "green", err
}

// runOnBaseWith runs the check on the base, with the change's version of some paths. name is part of the log's
// name.
func (p *proof) runOnBaseWith(ctx context.Context, name string, paths []string) (treeResult, error) {
	return p.runOnTree(ctx, "proof"+name, p.change.Base.Tree, p.change.Tree, paths)
}

// runOnTree runs the check on tree, in which paths have the content of the tree other. It repeats a red check.
// name is a part of the log's name.
func (p *proof) runOnTree(ctx context.Context, name string, tree, other gitops.Tree, paths []string) (treeResult, error) {
	swapped, err := p.Workspace.Checkout().Swap(tree, other, paths)
	if err != nil {
		return treeResult{}, err
	}
	s := p.newSuite(p.attempt, p.change.Base, swapped)
	s.changeTree, s.isProof = p.change.Tree, tree == p.change.Base.Tree
	s.kind, s.why = fmt.Sprintf("%s-%d", name, p.attempt), "for the red proof"
	r, err := p.runWithReruns(ctx, s, p.check)
	if err != nil {
		return treeResult{}, cmp.Or(context.Cause(ctx), err)
	}
	result := treeResult{state: r.state, log: transcript.DecidingRun(r.runs).Log}
	if result.output, err = p.Record.HeadAndTail(r.runs[0].Log, maxTestFileBytes, maxTestFileBytes); err != nil {
		return result, err
	}
	for _, run := range r.runs {
		results, err := p.readTests(ctx, p.checkSpec(), run.Log)
		if err != nil {
			return result, err
		}
		result.runs = append(result.runs, singleRun{p.failures(results), results})
	}
	return result, nil
}

// treeResult is a check's result on a tree.
type treeResult struct {
	state  string
	log    string
	output string      // of the first run
	runs   []singleRun // at least one
}

// singleRun has the tests in one run of a check.
type singleRun struct {
	failures []testsource.Failure
	results  *testresults.Results
}

// classByState returns the class of the test files of a red check whose output names no tests.
func (s treeResult) classByState() string {
	switch {
	case s.state == transcript.FlakyState:
		return transcript.FlakyProof
	case failsToLoad(s.runs[0].results, s.output):
		return transcript.LoadError
	}
	return transcript.Proven
}

// allTestsPassed reports whether every run shows that all tests of a file passed. If a run names all its
// failures, it is enough that the file ran.
func (p *proof) allTestsPassed(s treeResult, f testsource.File) bool {
	for _, run := range s.runs {
		if run.results.Complete() && p.locator.Ran(run.results, f) {
			continue
		}
		passed := p.locator.PassedTests(run.results, f)
		if len(f.Tests) == 0 || slices.ContainsFunc(f.Tests, func(t testsource.Test) bool { return !passed(t.Name) }) {
			return false
		}
	}
	return true
}

// classOf returns a file's class by the failing tests that the runs name. The class is "" if they name no test
// of the file. A test that fails only in some runs is flaky.
func (p *proof) classOf(s treeResult, f testsource.File) (of transcript.Proof) {
	of.Shared = true
	redRuns, loadedRuns := 0, 0 // runs with a failing test of the file, and those of them in which the file loaded
	failsWithChange := false    // a test of the file fails with the change, too
	for _, run := range s.runs {
		proving, others := p.failuresOf(run, f)
		failsWithChange = failsWithChange || len(others) > 0
		for _, x := range proving {
			of.Shared = of.Shared && x.Owner.Path != f.Path
			of.Tests = withFailingTest(of.Tests, x.Name)
		}
		if len(proving) > 0 {
			redRuns++
		}
		if slices.ContainsFunc(proving, func(x testsource.Failure) bool { return !x.LoadError }) {
			loadedRuns++
		}
	}
	switch {
	case redRuns == 0 && failsWithChange:
		return transcript.Proof{Class: transcript.Unknown, Note: "what fails there is not told to pass with the change"}
	case redRuns == 0: // the runs name no test of the file
	case redRuns < len(s.runs):
		of.Class = transcript.FlakyProof
	case loadedRuns == 0:
		of.Class = transcript.LoadError
	default:
		of.Class = transcript.Proven
	}
	return of
}

// failuresOf returns a run's failing tests of a file: those that pass with the change, and the others.
func (p *proof) failuresOf(run singleRun, f testsource.File) (proving, others []testsource.Failure) {
	for _, x := range run.failures {
		switch {
		case !x.BelongsTo(f):
		case p.passesWithChange(x):
			proving = append(proving, x)
		default:
			others = append(others, x)
		}
	}
	return proving, others
}

// passesWithChange reports whether a test that fails on the base passes with the change. If the
// check is green on the change, all tests pass there.
func (p *proof) passesWithChange(x testsource.Failure) bool {
	return p.changeResults == nil || p.changeResults.Passed(x.OutputName)
}

// withFailingTest returns names with that of a failing test, up to a maximum.
func withFailingTest(names []string, name string) []string {
	const maxNames = 10
	name = clip.Bytes(name, maxName)
	if name == "" || len(names) == maxNames || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// DescribeUnproven describes the test files that prove nothing to the agent, if it can fix that. The text
// continues a sentence. It may be empty.
func DescribeUnproven(table transcript.Verify) string {
	var unproven strings.Builder
	for _, p := range table.BestProofs() {
		if why := fixableClasses[p.Class]; why != "" {
			fmt.Fprintf(&unproven, "- %q: %s; %s\n", p.File, p.Class, cmp.Or(p.Note, why))
		}
	}
	if unproven.Len() == 0 {
		return ""
	}
	return "where the tests have to fail, and these prove nothing:\n" + unproven.String() +
		"A test that passes there would pass with a change that does nothing. Have it test what your change mends or adds, or leave it out, then end again with your summary. " +
		"If it is right as it is, end again and say why in your last message."
}

// fixableClasses describes the classes that the agent can fix.
var fixableClasses = map[string]string{
	transcript.NotRed:     "no test of it fails there",
	transcript.NoTests:    "nothing of it was run as a test",
	transcript.FlakyProof: "it failed there in one run and not in another",
}
