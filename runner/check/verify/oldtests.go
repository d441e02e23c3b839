package verify

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// judgeBaseTests records the base's tests that the change removed or breaks. It runs the change's code with
// the base's tests and data. Only a check that is green with the change's own tests shows anything: then a
// failure is due to changed tests.
func (p *proof) judgeBaseTests(ctx context.Context) error {
	if len(p.tests.baseTests)+len(p.tests.changedData) == 0 {
		return nil
	}
	p.recordRemovedTests()
	if p.row.After != "green" {
		p.oldTestsUnknown = "the check is " + p.row.After + " on the change"
		return nil
	}
	seen, err := p.runOnTree(ctx, "old", p.change.Tree, p.change.Base.Tree, p.tests.restorePaths)
	if err != nil {
		return err
	}
	switch seen.state {
	case "red":
		return p.recordFailingTests(ctx, seen)
	case "timeout":
		p.oldTestsUnknown = "with them on the change the check did not end in time"
	case transcript.FlakyState:
		p.oldTestsUnknown = "with them on the change the check is flaky"
	}
	return nil
}

// recordRemovedTests records tests of the base that no changed test file declares any more.
func (p *proof) recordRemovedTests() {
	if p.tests.unjudgedCount > 0 {
		p.oldTestsUnknown = "more test files changed than are looked at"
		return
	}
	before, now := map[string]testsource.File{}, map[string]testsource.File{} // by path
	for _, f := range p.tests.baseTests {
		before[f.Path] = f
	}
	added := map[string]bool{} // names that a file declares now and did not before: moved tests
	for _, f := range slices.Concat(p.tests.changedTests, p.tests.movedTests) {
		if f.NotRegular {
			continue
		}
		now[f.Path] = f
		for _, t := range f.Tests {
			added[t.Name] = added[t.Name] || !before[f.Path].Declares(t.Name)
		}
	}
	for _, f := range p.tests.baseTests {
		_, exists := now[f.Path]
		if isRemovedWhole := !exists && !f.Known; isRemovedWhole { // the names of its tests are unknown
			p.addBaseTest(transcript.OldTest{File: f.Path, Deleted: true})
		}
		for _, t := range f.Tests {
			if !now[f.Path].Declares(t.Name) && !added[t.Name] {
				p.addBaseTest(transcript.OldTest{Name: t.Name, File: f.Path, Line: t.Line, Deleted: true})
			}
		}
	}
}

// recordFailingTests records the failing tests of a run, or all changed files if none is named.
func (p *proof) recordFailingTests(ctx context.Context, seen treeResult) error {
	locator := testsource.NewLocator(p.Workspace.Checkout(), p.tests.baseTests)
	recordedAny := false
	for _, run := range seen.runs {
		if err := locator.Locate(ctx, run.failures); err != nil {
			return err
		}
		for _, x := range run.failures {
			recordedAny = p.recordFailing(x) || recordedAny
		}
	}
	if recordedAny {
		return nil
	}
	files := slices.Clone(p.tests.changedData)
	for _, f := range p.tests.baseTests {
		files = append(files, f.Path)
	}
	for _, f := range files {
		p.addBaseTest(transcript.OldTest{File: f, Fails: true, Shared: len(files) > 1})
	}
	return nil
}

// recordFailing records a failing test below its changed test file, or else below changed data, or not at all.
func (p *proof) recordFailing(failure testsource.Failure) (recorded bool) {
	old := transcript.OldTest{Name: failure.Name, File: failure.File, Line: failure.Line, Fails: true}
	switch owner := failure.Owner; {
	case owner != nil:
		old.File = owner.Path
		if t, found := owner.Find(failure.Name); found {
			old.Name, old.Line = t.Name, t.Line
		}
	case failure.Name == "" || len(p.tests.changedData) == 0:
		return false
	case failure.File == "":
		old.File, old.Line, old.Shared = p.tests.changedData[0], 0, len(p.tests.changedData) > 1
	}
	p.addBaseTest(old)
	return true
}

// addBaseTest records a test once, up to maxBaseTests.
func (p *proof) addBaseTest(o transcript.OldTest) {
	o.Name = clip.Bytes(o.Name, maxName)
	for i, other := range p.oldTests {
		if other.File == o.File && other.Name == o.Name {
			p.oldTests[i].Deleted, p.oldTests[i].Fails = other.Deleted || o.Deleted, other.Fails || o.Fails
			return
		}
	}
	if len(p.oldTests) < maxBaseTests {
		p.oldTests = append(p.oldTests, o)
	}
}
