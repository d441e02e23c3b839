package verify

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// judgeOld lists the base's tests that the change removed or that fail with the change's code and
// the base's tests and data. The check is green with the change's own tests, so such a failure
// comes from changed tests.
func (p *proof) judgeOld(ctx context.Context) error {
	if len(p.tests.old)+len(p.tests.data) == 0 {
		return nil
	}
	p.findGone()
	if p.row.After != "green" {
		p.oldUnknown = "the check is " + p.row.After + " on the change"
		return nil
	}
	seen, err := p.see(ctx, "old", p.change.Tree, p.change.Base.Tree, p.tests.back)
	if err != nil {
		return err
	}
	switch seen.state {
	case "green":
		return nil
	case "red":
		return p.findFailing(ctx, seen)
	}
	p.oldUnknown = map[string]string{
		"timeout": "with them on the change the check did not end in time", transcript.Flaky: "with them on the change the check is flaky",
	}[seen.state]
	return nil
}

// findGone records tests of the base that neither their file nor a file changed by the change
// declares any more.
func (p *proof) findGone() {
	if p.tests.more > 0 {
		p.oldUnknown = "more test files changed than are looked at"
		return
	}
	had, has := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, f := range p.tests.old {
		had[f.path] = f.namesOf()
	}
	for _, f := range append(p.tests.judged, p.tests.moved...) {
		if !f.link {
			has[f.path] = f.namesOf()
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
	for _, f := range p.tests.old {
		all, known := f.declares()
		if _, stays := has[f.path]; !known && !stays {
			p.note(transcript.OldTest{File: f.path, Gone: true})
		}
		for _, t := range all {
			if !has[f.path][t.name] && !moved(t.name) {
				p.note(transcript.OldTest{Name: t.name, File: f.path, Line: t.line, Gone: true})
			}
		}
	}
}

func (f testFile) namesOf() map[string]bool {
	names := map[string]bool{}
	all, _ := f.declares()
	for _, t := range all {
		names[t.name] = true
	}
	return names
}

// findFailing records the failing tests of a run, or without names their files.
func (p *proof) findFailing(ctx context.Context, of seen) error {
	names := newNaming(p.Workspace.Checkout(), p.tests.old)
	named := false
	for _, run := range of.runs {
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
	files := append([]string(nil), p.tests.data...)
	for _, f := range p.tests.old {
		files = append(files, f.path)
	}
	for _, f := range files {
		p.note(transcript.OldTest{File: f, Fails: true, Shared: len(files) > 1})
	}
	return nil
}

// noteFailing records a failing test and reports whether its name or file is known. A test in an
// unchanged file fails by changed data.
func (p *proof) noteFailing(ctx context.Context, names *naming, x Failure) (bool, error) {
	for i, f := range p.tests.old {
		is, shared, err := names.of(ctx, x, f)
		if err != nil {
			return false, err
		}
		if !is || shared {
			continue
		}
		old := transcript.OldTest{Name: x.Name, File: f.path, Line: x.Line, Fails: true}
		if t, found := names.tests[i].find(x.Name); found {
			old.Name, old.Line = t.name, t.line
		}
		p.note(old)
		return true, nil
	}
	if x.Name == "" || len(p.tests.data) == 0 {
		return false, nil
	}
	old := transcript.OldTest{Name: x.Name, File: x.File, Line: x.Line, Fails: true}
	if x.File == "" {
		old.File, old.Line, old.Shared = p.tests.data[0], 0, len(p.tests.data) > 1
	}
	p.note(old)
	return true, nil
}

func (p *proof) note(o transcript.OldTest) {
	o.Name = clip.Bytes(o.Name, longestName)
	for i, other := range p.old {
		if other.File == o.File && other.Name == o.Name {
			p.old[i].Gone, p.old[i].Fails = other.Gone || o.Gone, other.Fails || o.Fails
			return
		}
	}
	if len(p.old) < mostOldTests {
		p.old = append(p.old, o)
	}
}
