package verify

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// judgeBaseTests records the base's tests that the change removed or breaks. It runs the change's
// code with the base's tests and data. The check is green with the change's own tests, so a failure
// here comes from changed tests.
func (p *proof) judgeBaseTests(ctx context.Context) error {
	if len(p.tests.baseTests)+len(p.tests.changedData) == 0 {
		return nil
	}
	p.recordRemovedTests()
	if p.row.After != "green" {
		p.oldUnknown = "the check is " + p.row.After + " on the change"
		return nil
	}
	seen, err := p.runOnTree(ctx, "old", p.change.Tree, p.change.Base.Tree, p.tests.restorePaths)
	if err != nil {
		return err
	}
	switch seen.state {
	case "green":
		return nil
	case "red":
		return p.recordFailingTests(ctx, seen)
	}
	p.oldUnknown = map[string]string{
		"timeout": "with them on the change the check did not end in time", transcript.Flaky: "with them on the change the check is flaky",
	}[seen.state]
	return nil
}

// recordRemovedTests records tests of the base that no changed test file declares any more.
func (p *proof) recordRemovedTests() {
	if p.tests.unjudgedCount > 0 {
		p.oldUnknown = "more test files changed than are looked at"
		return
	}
	had, has := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, f := range p.tests.baseTests {
		had[f.Path] = namesOf(f)
	}
	for _, f := range append(p.tests.changedTests, p.tests.movedTests...) {
		if !f.Link {
			has[f.Path] = namesOf(f)
		}
	}
	moved := func(name string) bool {
		for path, names := range has {
			if names[name] && !had[path][name] {
				return true
			}
		}
		return false
	}
	for _, f := range p.tests.baseTests {
		all, known := f.Tests()
		if _, stays := has[f.Path]; !known && !stays {
			p.addBaseTest(transcript.OldTest{File: f.Path, Gone: true})
		}
		for _, t := range all {
			if !has[f.Path][t.Name] && !moved(t.Name) {
				p.addBaseTest(transcript.OldTest{Name: t.Name, File: f.Path, Line: t.Line, Gone: true})
			}
		}
	}
}

// namesOf returns the names of a file's tests.
func namesOf(f testsource.File) map[string]bool {
	names := map[string]bool{}
	all, _ := f.Tests()
	for _, t := range all {
		names[t.Name] = true
	}
	return names
}

// recordFailingTests records the failing tests of a run. If none can be named, it records all
// changed files.
func (p *proof) recordFailingTests(ctx context.Context, seen treeResult) error {
	names := testsource.NewLocator(p.Workspace.Checkout(), p.tests.baseTests)
	named := false
	for _, run := range seen.runs {
		for _, x := range run.failures {
			noted, err := p.noteFailing(ctx, names, x)
			if err != nil {
				return err
			}
			named = named || noted
		}
	}
	if named {
		return nil
	}
	files := append([]string(nil), p.tests.changedData...)
	for _, f := range p.tests.baseTests {
		files = append(files, f.Path)
	}
	for _, f := range files {
		p.addBaseTest(transcript.OldTest{File: f, Fails: true, Shared: len(files) > 1})
	}
	return nil
}

// noteFailing records a failing test. It returns false if neither its name nor its file is known.
// If the test's file did not change, changed data made it fail.
func (p *proof) noteFailing(ctx context.Context, names *testsource.Locator, x testsource.Failure) (bool, error) {
	for _, f := range p.tests.baseTests {
		is, shared, err := names.BelongsTo(ctx, x, f)
		if err != nil {
			return false, err
		}
		if !is || shared {
			continue
		}
		old := transcript.OldTest{Name: x.Name, File: f.Path, Line: x.Line, Fails: true}
		if t, found := names.Find(f, x.Name); found {
			old.Name, old.Line = t.Name, t.Line
		}
		p.addBaseTest(old)
		return true, nil
	}
	if x.Name == "" || len(p.tests.changedData) == 0 {
		return false, nil
	}
	old := transcript.OldTest{Name: x.Name, File: x.File, Line: x.Line, Fails: true}
	if x.File == "" {
		old.File, old.Line, old.Shared = p.tests.changedData[0], 0, len(p.tests.changedData) > 1
	}
	p.addBaseTest(old)
	return true, nil
}

// addBaseTest records a test once, up to maxBaseTests.
func (p *proof) addBaseTest(o transcript.OldTest) {
	o.Name = clip.Bytes(o.Name, maxName)
	for i, other := range p.old {
		if other.File == o.File && other.Name == o.Name {
			p.old[i].Gone, p.old[i].Fails = other.Gone || o.Gone, other.Fails || o.Fails
			return
		}
	}
	if len(p.old) < maxBaseTests {
		p.old = append(p.old, o)
	}
}
