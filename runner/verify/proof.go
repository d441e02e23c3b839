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
)

const (
	// mostAlone is how many test files a check judges one by one.
	mostAlone = 10
	// proofTimes is how often the timeout of a check its proof may take in all.
	proofTimes = 3
	// mostOldTests is how many tests of the base are named for one check.
	mostOldTests = 50
)

// prove gives the test files of a change their classes, by each check that proves and
// is green on the change. A red check has the change go back before.
func (c Checks) prove(ctx context.Context, attempt int, change *gitops.ChangeSet, table *transcript.Verify) error {
	if !c.Proving() || !table.Passed {
		return nil
	}
	t, err := c.testsOf(change)
	if err != nil || len(t.judged)+len(t.old) == 0 {
		return err
	}
	for i, check := range c.Job.Verify {
		row := &table.Rows[i]
		if !check.Proves || row.After != "green" && row.After != transcript.Flaky {
			continue
		}
		p := proof{Checks: c, check: i, row: *row, attempt: attempt, change: change, tests: t}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("prove the tests by %s: %w", check.Name, err)
		}
		slices.SortStableFunc(p.classes, func(a, b transcript.Proof) int { return strings.Compare(a.File, b.File) })
		row.Proof, row.ProofMore, row.OldTests = p.classes, t.more, p.old
	}
	return nil
}

// Proving says whether the tests of a change are judged.
func (c Checks) Proving() bool {
	proves := false
	for _, check := range c.Job.Verify {
		proves = proves || check.Proves
	}
	return proves && c.Job.RedProof != "off" && c.Clean()
}

// proof judges the tests of a change by one check.
type proof struct {
	Checks
	check   int
	row     transcript.VerifyRow // of the change
	attempt int
	change  *gitops.ChangeSet
	tests   tests

	classes []transcript.Proof
	old     []transcript.OldTest
	base    *bool // whether the check is green on the base; nil while that is not known
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
	err := p.classify(ctx)
	if err == nil {
		err = p.judgeOld(ctx)
	}
	if errors.Is(err, errOver) {
		p.restUnknown(errOver.Error())
		return nil
	}
	if confine.Unready(err) && whole.Err() == nil {
		p.restUnknown("a service that the check needs did not get ready there")
		return nil
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
	seen, err := p.onBase(ctx, "", p.tests.laid())
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
	if tests, known := f.declares(); known && len(tests) == 0 || ranNothing(seen.first()) {
		return transcript.NoTests
	}
	return transcript.NotRed
}

// byNames gives the files their classes of which a red output names tests, and looks
// at the others one by one.
func (p *proof) byNames(ctx context.Context, files []testFile, seen seen) error {
	var rest []testFile
	for _, f := range files {
		if class, of := seen.classOf(f, p.tests.judged); class != "" {
			p.give(f, class, "", false, of)
		} else if tests, known := f.declares(); known && len(tests) == 0 {
			p.give(f, transcript.NoTests, "", false, told{log: seen.log})
		} else {
			rest = append(rest, f)
		}
	}
	named := len(rest) < len(files)
	if seen.state == transcript.Flaky && !named {
		p.all(rest, transcript.FlakyProof, "", told{log: seen.log})
		return nil
	}
	switch green, err := p.baseGreen(ctx, len(rest) > 0); {
	case err != nil || len(rest) == 0:
		return err
	case !green && named:
		p.all(rest, transcript.NotRed, "", told{log: seen.log})
	case !green:
		p.all(rest, transcript.Unknown, "the check is red on the base without it too, and its output names no tests of it", told{log: seen.log})
	case len(files) == 1:
		p.give(rest[0], seen.byState(), "", false, told{log: seen.log})
	case len(rest) > mostAlone && named:
		p.all(rest, transcript.NotRed, "", told{log: seen.log})
	case len(rest) > mostAlone:
		p.all(rest, seen.byState(), "", told{log: seen.log})
	default:
		return p.alone(ctx, rest, seen, named)
	}
	return nil
}

// alone runs the check with each file by itself. together is what it said with all of
// them, where none of these is named.
func (p *proof) alone(ctx context.Context, files []testFile, together seen, named bool) error {
	before, green := len(p.classes), 0
	for n, f := range files {
		seen, err := p.onBase(ctx, fmt.Sprintf("-file%d", n+1), append([]string{f.path}, p.tests.data...))
		if err != nil {
			return err
		}
		class, of := seen.classOf(f, p.tests.judged)
		switch {
		case seen.state == "timeout":
			p.give(f, transcript.Unknown, "with it on the base the check did not end in time", false, told{log: seen.log})
		case seen.state == "green":
			green++
			p.give(f, greenClass(f, seen), "", false, told{log: seen.log})
		case class != "":
			p.give(f, class, "", false, of)
		default:
			p.give(f, seen.byState(), "", false, told{log: seen.log})
		}
	}
	if green == len(files) && !named { // and yet they were red together
		p.classes = p.classes[:before]
		p.all(files, together.byState(), "it fails there only together with the others", told{log: together.log})
	}
	return nil
}

// baseGreen says whether the check is green on the base alone, without which its red
// with a test says nothing. A baseline that was kept is no word for that, and runs again.
func (p *proof) baseGreen(ctx context.Context, wanted bool) (bool, error) {
	if !wanted || p.row.From == "" {
		return transcript.Good(p.row.Before, p.row.Flaky), nil
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
	swapped, err := p.Workspace.Checkout().Swap(tree, other, paths)
	if err != nil {
		return seen{}, err
	}
	s := suiteOf(p.attempt, p.change.Base, swapped)
	s.kind, s.proof = fmt.Sprintf("%s-%d", name, p.attempt), true
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
		failures, err := p.failures(p.spec(), run.Log)
		if err != nil {
			return of, err
		}
		of.runs = append(of.runs, ranOnce{run.State, output, failures})
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
}

// told is what a class comes from.
type told struct {
	names []string
	log   string
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
	case loads().MatchString(s.first()):
		return transcript.LoadError
	}
	return transcript.Proven
}

// classOf is the class of a file by the tests that the runs name; empty where none names
// one of it. Those that fail in one run alone are flaky.
func (s seen) classOf(f testFile, all []testFile) (string, told) {
	const most = 10
	class, of := "", told{log: s.log}
	failed, loadless := 0, 0
	names := map[string]bool{}
	for _, run := range s.runs {
		fails, loads := false, true
		for _, x := range run.failures {
			if !isOf(f, x, all) {
				continue
			}
			fails, loads = true, loads && x.Load
			if x.Name != "" && !names[x.Name] && len(of.names) < most {
				names[x.Name] = true
				of.names = append(of.names, shortened(x.Name))
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
	case failed < len(s.runs):
		class = transcript.FlakyProof
	case loadless == 0:
		class = transcript.LoadError
	default:
		class = transcript.Proven
	}
	return class, of
}

// isOf says whether a failure is of a file. A name that is one's whole path is no
// other's.
func isOf(f testFile, x Failure, all []testFile) bool {
	for _, other := range all {
		if x.File != "" && other.path == x.File {
			return f.path == x.File || x.Load && samePackage(f.path, x.File)
		}
	}
	return f.has(x)
}

// samePackage says whether two files of Go stand or fall together: those of a folder
// are compiled as one.
func samePackage(a, b string) bool {
	return strings.HasSuffix(a, ".go") && strings.HasSuffix(b, ".go") && a[:strings.LastIndex(a, "/")+1] == b[:strings.LastIndex(b, "/")+1]
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
