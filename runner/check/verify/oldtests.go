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
	before := namesByFile(p.tests.baseTests)
	now := namesByFile(append(p.tests.changedTests, p.tests.movedTests...))
	added := map[string]bool{} // names that a file declares now and did not before: moved tests
	for path, names := range now {
		for name := range names {
			if !before[path][name] {
				added[name] = true
			}
		}
	}
	for _, f := range p.tests.baseTests {
		tests, isKnownLanguage := f.Tests()
		if _, exists := now[f.Path]; !isKnownLanguage && !exists {
			p.addBaseTest(transcript.OldTest{File: f.Path, Deleted: true})
		}
		for _, t := range tests {
			if !now[f.Path][t.Name] && !added[t.Name] {
				p.addBaseTest(transcript.OldTest{Name: t.Name, File: f.Path, Line: t.Line, Deleted: true})
			}
		}
	}
}

// namesByFile returns the names of the tests in files, by path. It omits links.
func namesByFile(files []testsource.File) map[string]map[string]bool {
	byFile := map[string]map[string]bool{}
	for _, f := range files {
		if f.NotRegular {
			continue
		}
		byFile[f.Path] = map[string]bool{}
		all, _ := f.Tests()
		for _, t := range all {
			byFile[f.Path][t.Name] = true
		}
	}
	return byFile
}

// recordFailingTests records the failing tests of a run, or all changed files if none is named.
func (p *proof) recordFailingTests(ctx context.Context, seen treeResult) error {
	locator := testsource.NewLocator(p.Workspace.Checkout(), p.tests.baseTests)
	recordedAny := false
	for _, run := range seen.runs {
		for _, x := range run.failures {
			recorded, err := p.recordFailing(ctx, locator, x)
			if err != nil {
				return err
			}
			recordedAny = recordedAny || recorded
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
func (p *proof) recordFailing(ctx context.Context, locator *testsource.Locator, failure testsource.Failure) (recorded bool, err error) {
	for _, f := range p.tests.baseTests {
		belongs, shared, err := locator.BelongsTo(ctx, failure, f)
		if err != nil {
			return false, err
		}
		if !belongs || shared {
			continue
		}
		old := transcript.OldTest{Name: failure.Name, File: f.Path, Line: failure.Line, Fails: true}
		if t, found := locator.Find(f, failure.Name); found {
			old.Name, old.Line = t.Name, t.Line
		}
		p.addBaseTest(old)
		return true, nil
	}
	if failure.Name == "" || len(p.tests.changedData) == 0 {
		return false, nil
	}
	old := transcript.OldTest{Name: failure.Name, File: failure.File, Line: failure.Line, Fails: true}
	if failure.File == "" {
		old.File, old.Line, old.Shared = p.tests.changedData[0], 0, len(p.tests.changedData) > 1
	}
	p.addBaseTest(old)
	return true, nil
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
