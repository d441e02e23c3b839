package verify

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// judgeOld names the tests of the base that the change took away, and those that fail on
// it where the files of tests are as the base has them.
func (p *proof) judgeOld(ctx context.Context) error {
	if len(p.tests.old) == 0 {
		return nil
	}
	p.findGone()
	if !transcript.Good(p.row.Before, p.row.Flaky) || p.row.After != "green" {
		return nil // what fails now may have failed before
	}
	var paths []string
	for _, f := range p.tests.old {
		paths = append(paths, f.path)
	}
	seen, err := p.see(ctx, "old", p.change.Tree, p.change.Base.Tree, paths)
	if err != nil || seen.state == "green" {
		return err
	}
	named := false
	for _, run := range seen.runs {
		for _, x := range run.failures {
			named = p.findFailing(x) || named
		}
	}
	if !named { // which of them it is, is not known
		for _, f := range p.tests.old {
			p.note(transcript.OldTest{File: f.path, Fails: true})
		}
	}
	return nil
}

// findGone notes tests that a file of the base declares and no test file of the change
// does any more.
func (p *proof) findGone() {
	now := map[string]bool{}
	stays := map[string]bool{}
	for _, f := range p.tests.judged {
		tests, _ := f.declares()
		for _, t := range tests {
			now[t.name] = true
		}
		stays[f.path] = !f.link
	}
	for _, f := range p.tests.old {
		tests, known := f.declares()
		if !known && !stays[f.path] {
			p.note(transcript.OldTest{File: f.path, Gone: true})
		}
		for _, t := range tests {
			if !now[t.name] {
				p.note(transcript.OldTest{Name: t.name, File: f.path, Line: t.line, Gone: true})
			}
		}
	}
}

// findFailing notes the test that a failure is of, and says whether there is one.
func (p *proof) findFailing(x Failure) bool {
	for _, f := range p.tests.old {
		if !isOf(f, x, p.tests.old) {
			continue
		}
		old := transcript.OldTest{Name: x.Name, File: f.path, Line: x.Line, Fails: true}
		tests, _ := f.declares()
		for _, t := range tests {
			if x.Name != "" && (testFile{path: f.path, text: "func " + t.name + "("}).tells(x.Name) || t.name == x.Name {
				old.Name, old.Line = t.name, t.line
			}
		}
		p.note(old)
		return true
	}
	return false
}

func (p *proof) note(o transcript.OldTest) {
	o.Name = shortened(o.Name)
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
