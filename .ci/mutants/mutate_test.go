package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestMutants finds the faults of a function and makes one of them.
func TestMutants(t *testing.T) {
	t.Parallel()
	const source = `package p

func f(a, b int, names []string) (string, error) {
	if a > b && a != 0 {
		return "", nil
	}
	names[0] = "one"
	return names[0], work(func() bool { return a < b })
}
`
	found, err := mutantsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, m := range found {
		faults = append(faults, m.where+": "+m.what)
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", strings.ReplaceAll(string(apply([]byte(source), m.edits)), id, "1"), 0); err != nil {
			t.Errorf("%s does not parse: %v", m.what, err)
		}
	}
	must.Same(t, []string{
		`p.go:7: left out: names[0] = "one"`,
		"p.go:4: condition negated",
		"p.go:4: left side of && is true",
		"p.go:4: right side of && is true",
		"p.go:4: limit of > is off by one",
		"p.go:8: no error from: return names[0], work(func() bool { return a < b })",
		"p.go:8: opposite of: return a < b",
		"p.go:8: limit of < is off by one",
	}, faults)
	var all []edit
	for _, m := range found {
		all = append(all, m.edits...)
	}
	if got, want := strings.ReplaceAll(string(apply([]byte(source), all)), id, "N"),
		"if ((mutantAdd(a, N) > b || mutantOn(N)) && (a != 0 || mutantOn(N))) != mutantOn(N) {"; !strings.Contains(got, want) || !strings.Contains(got, "(a < mutantAdd(b, N)) != mutantOn(N)") {
		t.Errorf("nested faults lack %s:\n%s", want, got)
	}
}

// TestSurvivorsAndNeededTests counts what tests kill.
func TestSurvivorsAndNeededTests(t *testing.T) {
	t.Parallel()
	r := &result{
		mutants: []*mutant{{where: "a", killers: []string{"TestBoth", "TestA"}}, {where: "b", killers: []string{"TestBoth"}}, {where: "c", reached: true}, {where: "d", killers: []string{"other"}}},
		tests:   []*test{{name: "TestA"}, {name: "TestBoth"}},
	}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"score: 3 of 4 mutants killed, 2 by 2 tests and 1 by others alone\n", "survived: c: ", "killed by others alone: d: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	must.Same(t, map[string]bool{"TestBoth": true}, r.needed())
}
