package report

import (
	"cmp"
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

func (o *overview) verificationSection() g.Node {
	if !o.begun() {
		return nil
	}
	content := g.Group{sentence("No verify command was run: nothing says that a change works.")}
	if checks := o.checks(); len(checks) > 0 {
		content = g.Group{
			table([]string{"Check", "Result", "Before", "After", "Time"}, g.Map(checks, check.node)),
			sentence(moreRows("check", len(o.View.Verify.Rows))),
			g.Map(checks, check.tests),
			g.Map(checks, check.output),
		}
	}
	return section("verification", "Verification", content, o.proofs(), o.oldTests())
}

// check is a row of the verification with the place of its output on the page.
type check struct {
	transcript.VerifyRow
	outputID string // of its last lines; empty where none are shown
}

// checks are the rows of the last verification.
func (o *overview) checks() []check {
	if o.View.Verify == nil {
		return nil
	}
	var all []check
	for i, row := range shownOf(o.View.Verify.Rows) {
		one := check{VerifyRow: row}
		if !row.Passed && row.After != "" && row.Tail != "" {
			one.outputID = fmt.Sprintf("output-%d", i+1)
		}
		all = append(all, one)
	}
	return all
}

var (
	resultTones = map[string]string{"passed": "good", transcript.Proven: "good", transcript.NotRed: "bad", transcript.NoTests: "bad", transcript.FlakyProof: "bad", transcript.CheckFailed: "bad"}
	resultSigns = map[string]string{"passed": "✓ ", "flaky, accepted": "✓ ", transcript.CheckFailed: "✗ "}
	// stateTones are how the states of a check look; what is none of them is plain text.
	stateTones = map[string]string{"green": "good", "red": "bad", "timeout": "bad", transcript.Flaky: "open"}
)

// resultTone is how the result of a check, or the class of a proof, looks.
func resultTone(result string) string { return cmp.Or(resultTones[result], "open") }

func (c check) node() g.Node {
	head := g.Group{g.Text(field(c.Name))}
	if run := field(c.Run); run != field(c.Name) {
		head = append(head, h.Br(), code(run))
	}
	result := g.Group{
		h.Span(h.Class("badge word "+resultTone(c.Result())), g.Text(resultSigns[c.Result()]+c.Result())),
		behind(c.TestsAfter()),
	}
	if c.outputID != "" {
		result = append(result, g.Text(" "), within(c.outputID, "output"))
	}
	return row(head,
		cell("Result", result),
		cell("Before", state(field(c.Before)), behind(field(c.Origin()))),
		cell("After", state(field(c.After))),
		cell("Time", g.Text(transcript.Duration(c.Seconds))),
	)
}

func state(word string) g.Node {
	switch {
	case word == "":
		return g.Text("–")
	case stateTones[word] == "":
		return g.Text(word)
	}
	return h.Span(h.Class("badge word "+stateTones[word]), g.Text(word))
}

// tests are those that fail, and those that the change fixed, where the output tells of any.
func (c check) tests() g.Node {
	if c.TestsAfter() == "" {
		return nil
	}
	return h.Details(
		g.Attr("open"),
		h.Summary(g.Text("Tests of "+field(c.Name)+": "+c.TestsAfter())),
		h.Ul(
			g.Map(shownOf(c.Failing), failingTest),
			g.Map(shownOf(c.Mended), func(name string) g.Node { return h.Li(g.Text("fixed: "), code(field(name))) }),
		),
		sentence(moreRows("test", max(len(c.Failing)+c.FailingMore, len(c.Mended)))),
	)
}

func failingTest(t transcript.FailingTest) g.Node {
	var item g.Group
	if t.New {
		item = append(item, h.B(g.Text("new:")), g.Text(" "))
	}
	item = append(item, code(field(t.Name)))
	if place := t.Place(); place != "" {
		item = append(item, g.Text(" "), code(field(place)))
	}
	if only := t.Only(); only != "" {
		item = append(item, g.Text(" "+only+":"))
	}
	return h.Li(item, g.Text(" "+shownText(t.Message, 300)))
}

// output is the end of what a check printed that did not come out as it must.
func (c check) output() g.Node {
	if c.outputID == "" {
		return nil
	}
	return lastLines(h.ID(c.outputID), field(c.Name), field(c.After), c.Tail)
}

// tailBytes is the most of one such end that the overview shows; the timeline may show
// more.
const tailBytes = 8 << 10

// lastLines is the end of what a command that failed printed.
func lastLines(id g.Node, name, end, tail string) g.Node {
	return h.Details(
		g.Attr("open"), id,
		h.Summary(g.Text("The last lines of "+name+" ("+end+")")),
		h.Pre(h.TabIndex("0"), g.Text(shownText(tail, tailBytes))),
	)
}

// proofs are what the tests of the change did on the base.
func (o *overview) proofs() g.Node {
	if o.View.Verify == nil || len(o.View.Verify.Proofs()) == 0 {
		return nil
	}
	const onBase, failing = "On the base without the change", "Failing there"
	return g.Group{
		h.H3(g.Text("Red proof")),
		table([]string{"Tests", onBase, failing}, g.Map(shownOf(o.View.Verify.Proofs()), func(p transcript.Proof) g.Node {
			shared := ""
			if p.Shared {
				shared = "shared"
			}
			tests := g.Map(p.Tests, func(name string) g.Node { return g.Text(field(name) + " ") })
			if len(tests) == 0 {
				tests = g.Group{g.Text("–")}
			}
			return row(code(field(markdown.FileName(p.File))),
				cell(onBase, h.Span(h.Class("badge "+resultTone(p.Class)), g.Text(field(p.Class))), behind(shared), behind(field(p.Note))),
				cell(failing, tests),
			)
		})),
	}
}

// oldTests are the tests of the base that are not what they were.
func (o *overview) oldTests() g.Node {
	if o.View.Verify == nil {
		return nil
	}
	all, unknown := shownOf(o.View.Verify.OldTests()), o.View.Verify.OldTestsUnknown()
	if len(all) == 0 && unknown == "" {
		return nil
	}
	items := g.Map(all, func(t transcript.OldTest) g.Node {
		place := field(markdown.FileName(t.File))
		if t.Line != 0 {
			place += fmt.Sprintf(":%d", t.Line)
		}
		return h.Li(code(place), g.Text(" "+field(t.Name)+" "+t.State()))
	})
	if unknown != "" {
		items = append(items, h.Li(g.Text("not all is known: "+field(unknown))))
	}
	return g.Group{h.H3(g.Text("Tests of the base")), h.Ul(items)}
}
