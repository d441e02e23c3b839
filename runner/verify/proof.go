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
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify/testresults"
)

const (
	// mostAlone is how many test files a check judges one by one.
	mostAlone = 10
	// proofTimes is how often the timeout of a check its proof may take in all.
	proofTimes = 5
	// mostOldTests is how many tests of the base are named for one check.
	mostOldTests = 50
)

// prove gives the test files of a change their classes, by each check that proves and
// is green on the change, and looks at what the change made of what checks run. A red check
// has the change go back before.
func (c Checks) prove(ctx context.Context, attempt int, change *gitops.ChangeSet, table *transcript.Verify) error {
	if c.Job.RedProof == "off" || !c.Clean() || !table.Passed {
		return nil
	}
	var t tests
	if slices.ContainsFunc(c.Job.Verify, func(check job.VerifyCheck) bool { return check.Proves }) {
		var err error
		if t, err = c.testsOf(change); err != nil {
			return err
		}
	}
	touched := len(t.judged)+len(t.old)+len(t.data) > 0
	for i, check := range c.Job.Verify {
		row := &table.Rows[i]
		p := proof{Checks: c, check: i, row: *row, attempt: attempt, change: change, scripts: c.scripts(i, *row, change)}
		if check.Proves && touched && (row.After == "green" || row.After == transcript.Flaky) {
			p.tests, p.names = t, newNaming(c.Workspace.Checkout(), t.judged)
			p.scripts = slices.DeleteFunc(p.scripts, func(path string) bool { return slices.Contains(t.back, path) })
		} else if len(p.scripts) == 0 {
			continue
		}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("prove the tests by %s: %w", check.Name, err)
		}
		p.dropHelpers()
		slices.SortStableFunc(p.classes, func(a, b transcript.Proof) int { return strings.Compare(a.File, b.File) })
		row.Proof, row.ProofMore, row.OldTests, row.OldTestsUnknown = p.classes, p.tests.more, p.old, p.oldUnknown
	}
	return nil
}

// proof judges the tests of a change by one check.
type proof struct {
	Checks
	check   int
	row     transcript.VerifyRow // of the change
	attempt int
	change  *gitops.ChangeSet
	tests   tests
	scripts []string // that the check runs, and that the change altered

	names      *naming // of the files that are judged
	classes    []transcript.Proof
	old        []transcript.OldTest
	oldUnknown string // why more is not known of them
	base       *bool  // whether the check is green on the base; nil while that is not known
}

// errOver says that the time for a proof is over.
var errOver = errors.New("the time for it was over")

// run stays within what a proof may take, and within the time of the run.
func (p *proof) run(whole context.Context) error {
	end := time.Now().Add(proofTimes * time.Duration(p.spec().Timeout))
	if !p.Until.IsZero() && p.Until.Before(end) {
		end = p.Until
	}
	ctx, cancel := context.WithDeadlineCause(whole, end, errOver)
	defer cancel()
	over := func(of func(context.Context) error) (why string, err error) {
		switch err := of(ctx); {
		case errors.Is(err, errOver):
			return errOver.Error(), nil
		case confine.Unready(err) && whole.Err() == nil:
			return "a service that the check needs did not get ready there", nil
		default:
			return "", err
		}
	}
	why, err := over(p.judgeOld)
	if err != nil {
		return err
	}
	p.oldUnknown = cmp.Or(why, p.oldUnknown)
	if why, err = over(p.judgeScripts); err != nil {
		return err
	}
	p.oldUnknown = cmp.Or(why, p.oldUnknown)
	if why, err = over(p.classify); why != "" {
		p.restUnknown(why)
	}
	return err
}

func (p *proof) spec() job.VerifyCheck { return p.Job.Verify[p.check] }

// give gives a file a class.
func (p *proof) give(file testFile, class, note string, shared bool, of told) {
	p.classes = append(p.classes, transcript.Proof{File: file.path, Class: class, Note: note, Shared: shared, Tests: of.names, Log: of.log})
}

// restUnknown gives the class unknown to the files that have none.
func (p *proof) restUnknown(note string) {
	has := map[string]bool{}
	for _, of := range p.classes {
		has[of.File] = true
	}
	for _, f := range p.tests.judged {
		if !has[f.path] {
			p.give(f, transcript.Unknown, note, len(p.tests.judged) > 1, told{})
		}
	}
}

// classify runs the check with the tests of the change on the base.
func (p *proof) classify(ctx context.Context) error {
	var files []testFile
	for _, f := range p.tests.judged {
		if f.link {
			p.give(f, transcript.NoTests, "it is no file", false, told{})
			continue
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil
	}
	if p.row.After == transcript.Flaky {
		p.all(files, transcript.FlakyProof, "the check is flaky on the change", told{})
		return nil
	}
	seen, err := p.onBase(ctx, "", p.tests.laid)
	if err != nil {
		return err
	}
	switch seen.state {
	case "timeout":
		p.all(files, transcript.Unknown, "with it on the base the check did not end in time", told{log: seen.log})
	case "green":
		for _, f := range files {
			p.give(f, greenClass(f, seen), "", false, told{log: seen.log})
		}
	default:
		return p.byNames(ctx, files, seen)
	}
	return nil
}

// all gives several files one class.
func (p *proof) all(files []testFile, class, note string, of told) {
	for _, f := range files {
		p.give(f, class, note, len(files) > 1, of)
	}
}

// greenClass is the class of a file with which the check is green on the base.
func greenClass(f testFile, seen seen) string {
	if _, known := f.declares(); ranNothing(seen.first()) || known && !f.hasTests() {
		return transcript.NoTests
	}
	return transcript.NotRed
}

// dropHelpers takes out files that have no tests where others are red on the base: they
// help those.
func (p *proof) dropHelpers() {
	red := func(of transcript.Proof) bool {
		return of.Class == transcript.Proven || of.Class == transcript.LoadError
	}
	if !slices.ContainsFunc(p.classes, red) {
		return
	}
	helps := map[string]bool{}
	for _, f := range p.tests.judged {
		helps[f.path] = !f.link && !f.hasTests()
	}
	p.classes = slices.DeleteFunc(p.classes, func(of transcript.Proof) bool {
		return helps[of.File] && (of.Class == transcript.NotRed || of.Class == transcript.NoTests)
	})
}

// byNames gives the files their classes of which a red output names tests, and looks
// at the others one by one.
func (p *proof) byNames(ctx context.Context, files []testFile, seen seen) error {
	var rest []testFile
	for _, f := range files {
		class, of, err := p.classOf(ctx, seen, f)
		switch {
		case err != nil:
			return err
		case class != "":
			p.give(f, class, "", of.shared, of)
		case seen.allPassed(f, p.names.packageOf(f)):
			p.give(f, transcript.NotRed, "", false, told{log: seen.log})
		default:
			rest = append(rest, f)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	named := len(rest) < len(files)
	if seen.state == transcript.Flaky && !named {
		p.all(rest, transcript.FlakyProof, "", told{log: seen.log})
		return nil
	}
	green, err := p.baseGreen(ctx)
	switch {
	case err != nil:
		return err
	case !green:
		p.all(rest, transcript.Unknown, "the check is red on the base without it too, and its output names no tests of it", told{log: seen.log})
	case len(files) == 1:
		p.give(rest[0], seen.byState(), "", false, told{log: seen.log})
	case len(rest) > mostAlone && named:
		p.all(rest, transcript.Unknown, "the output names tests of other files, and may have ended before it came to these", told{log: seen.log})
	case len(rest) > mostAlone:
		p.all(rest, seen.byState(), "", told{log: seen.log})
	default:
		return p.alone(ctx, rest, seen, named)
	}
	return nil
}

// alone runs the check with each file by itself. together is what it said with all of
// them, where none of these is named. A file that can't be without the others has no class
// by itself.
func (p *proof) alone(ctx context.Context, files []testFile, together seen, named bool) error {
	before, green, needing := len(p.classes), 0, []testFile(nil)
	for n, f := range files {
		of, class, err := p.byItself(ctx, n, f)
		switch {
		case err != nil:
			return err
		case class == "":
			needing = append(needing, f)
		default:
			p.give(f, class, of.why, false, of)
		}
		if class == transcript.NotRed || class == transcript.NoTests {
			green++
		}
	}
	note, log := "it needs others of these to run", told{log: together.log}
	if len(needing) == 0 {
		note = "it fails there only together with the others"
	}
	switch {
	case len(needing) == 0 && (named || green < len(files)):
	case named:
		p.all(needing, transcript.Unknown, note, log)
	default:
		p.classes = p.classes[:before]
		p.all(files, together.byState(), note, log)
	}
	return nil
}

// byItself is the class of a file that is laid on the base without the other files of tests;
// empty where the change is red without these too.
func (p *proof) byItself(ctx context.Context, n int, f testFile) (told, string, error) {
	others := p.without(f)
	laid := slices.DeleteFunc(slices.Clone(p.tests.laid), func(path string) bool { return slices.Contains(others, path) })
	seen, err := p.onBase(ctx, fmt.Sprintf("-file%d", n+1), laid)
	if err != nil {
		return told{}, "", err
	}
	class, of, err := p.classOf(ctx, seen, f)
	of.log = seen.log
	switch {
	case err != nil:
		return of, "", err
	case seen.state == "timeout":
		of.why = "with it on the base the check did not end in time"
		return of, transcript.Unknown, nil
	case seen.state == "green":
		return of, greenClass(f, seen), nil
	case class == transcript.Proven || class == transcript.FlakyProof:
		return of, class, nil
	}
	whole, err := p.see(ctx, fmt.Sprintf("whole-file%d", n+1), p.change.Tree, p.change.Base.Tree, others)
	if err != nil || whole.state != "green" {
		return of, "", err
	}
	return of, cmp.Or(class, seen.byState()), nil
}

// without are the paths of the files of tests that are judged beside one.
func (p *proof) without(f testFile) (paths []string) {
	for _, other := range p.tests.judged {
		if other.path != f.path {
			paths = append(paths, other.path)
		}
	}
	return paths
}

// baseGreen says whether the check is green on the base alone, without which its red
// with a test says nothing. A baseline that was kept, or that is of another base, is no word
// for that, and the check runs there again.
func (p *proof) baseGreen(ctx context.Context) (bool, error) {
	if p.row.From == "" && !p.moved {
		return p.row.Before == "green", nil
	}
	if p.base == nil {
		seen, err := p.onBase(ctx, "-none", nil)
		if err != nil {
			return false, err
		}
		green := seen.state == "green"
		p.base = &green
	}
	return *p.base, nil
}

// onBase runs the check on the base with some files of the change.
func (p *proof) onBase(ctx context.Context, name string, paths []string) (seen, error) {
	return p.see(ctx, "proof"+name, p.change.Base.Tree, p.change.Tree, paths)
}

// see runs the check on a tree with some paths of another one.
func (p *proof) see(ctx context.Context, name string, tree, other gitops.Tree, paths []string) (seen, error) {
	if err := p.Workspace.GitUnchanged(ctx); err != nil {
		return seen{}, err
	}
	swapped, err := p.Workspace.Checkout().Swap(tree, other, paths)
	if err != nil {
		return seen{}, err
	}
	s := suiteOf(p.attempt, p.change.Base, swapped)
	s.kind, s.notOwn, s.lanes, s.why = fmt.Sprintf("%s-%d", name, p.attempt), true, p.lanes(), "for the red proof"
	r, err := p.untilGreen(ctx, s, p.check)
	if err != nil {
		return seen{}, cmp.Or(context.Cause(ctx), err)
	}
	of := seen{state: r.state, log: transcript.Deciding(r.runs).Log}
	for _, run := range r.runs {
		output, err := p.Record.Ends(run.Log, mostOfTest, mostOfTest)
		if err != nil {
			return of, err
		}
		results, err := p.Checks.tests(ctx, p.spec(), run.Log)
		if err != nil {
			return of, err
		}
		of.runs = append(of.runs, ranOnce{run.State, output, p.failures(results), results})
	}
	return of, nil
}

// seen is what a check said of a tree.
type seen struct {
	state string
	log   string
	runs  []ranOnce
}

type ranOnce struct {
	state    string
	output   string
	failures []Failure
	results  *testresults.Results
}

// told is what a class comes from.
type told struct {
	names  []string // of tests that fail
	log    string
	why    string // where the class does not say it
	shared bool
}

func (s seen) first() string {
	if len(s.runs) == 0 {
		return ""
	}
	return s.runs[0].output
}

// byState is the class of what was red, where no test is named.
func (s seen) byState() string {
	switch {
	case s.state == transcript.Flaky:
		return transcript.FlakyProof
	case loads().MatchString(s.first()) && !s.ranTests():
		return transcript.LoadError
	}
	return transcript.Proven
}

// ranTests says whether the output tells of a test that ran.
func (s seen) ranTests() bool {
	return slices.ContainsFunc(s.runs, func(run ranOnce) bool {
		return run.results.Ran() || slices.ContainsFunc(run.failures, func(x Failure) bool { return !x.Load && x.Name != "" })
	})
}

// allPassed says whether all runs tell that each test of a file passed, as go test and
// pytest do.
func (s seen) allPassed(f testFile, goPackage string) bool {
	all, _ := f.declares()
	if len(all) == 0 || !strings.HasSuffix(f.path, ".py") && goPackage == "" {
		return false
	}
	for _, run := range s.runs {
		passed := func(name string) bool { return run.results.Named(f.path + "::" + name) }
		if strings.HasSuffix(f.path, ".go") {
			passed = func(name string) bool { return run.results.Passed(goPackage + "." + name) }
		}
		if slices.ContainsFunc(all, func(t declared) bool { return !passed(t.name) }) {
			return false
		}
	}
	return true
}

// classOf is the class of a file by the tests that the runs name; empty where none names
// one of it. Those that fail in one run alone are flaky.
func (p *proof) classOf(ctx context.Context, s seen, f testFile) (string, told, error) {
	of := told{log: s.log, shared: true}
	failed, loadless := 0, 0
	for _, run := range s.runs {
		fails, loads := false, true
		for _, x := range run.failures {
			is, shared, err := p.names.of(ctx, x, f)
			if err != nil {
				return "", of, err
			}
			if is {
				fails, loads, of.shared = true, loads && x.Load, of.shared && shared
				of.add(x.Name)
			}
		}
		if fails {
			failed++
		}
		if fails && !loads {
			loadless++
		}
	}
	switch {
	case failed == 0:
		return "", of, nil
	case failed < len(s.runs):
		return transcript.FlakyProof, of, nil
	case loadless == 0:
		return transcript.LoadError, of, nil
	}
	return transcript.Proven, of, nil
}

// add adds the name of a test, if there are not many.
func (t *told) add(name string) {
	const most = 10
	if name = shortened(name); name != "" && len(t.names) < most && !slices.Contains(t.names, name) {
		t.names = append(t.names, name)
	}
}

// UnprovenWords tell the agent which tests of a change prove nothing, as far as it can
// mend that; empty for none. They go on with a sentence that says what was run.
func UnprovenWords(table transcript.Verify) string {
	var unproven strings.Builder
	for _, p := range table.Proofs() {
		if why := mendable[p.Class]; why != "" {
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

// mendable are the classes that an agent can do something about, and what they mean.
var mendable = map[string]string{
	transcript.NotRed:     "no test of it fails there",
	transcript.NoTests:    "nothing of it was run as a test",
	transcript.FlakyProof: "it failed there in one run and not in another",
}
