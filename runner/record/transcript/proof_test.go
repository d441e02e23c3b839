package transcript

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestCombinesProofsOfChecks(t *testing.T) {
	table := Verify{Rows: []VerifyRow{
		{Proof: []Proof{{File: "b", Class: NotRed}, {File: "a", Class: Proven}}, OldTests: []OldTest{{Name: "x", File: "a", Line: 1, Deleted: true}}},
		{Proof: []Proof{{File: "a", Class: NoTests}, {File: "b", Class: LoadError}, {File: "c", Class: "of a later version"}}, ProofMore: 3},
		{OldTests: []OldTest{{Name: "x", File: "a", Line: 1, Fails: true}, {Name: "y", File: "a", Fails: true}}, ProofMore: 2},
	}}
	want := []Proof{{File: "a", Class: Proven}, {File: "b", Class: LoadError}, {File: "c", Class: "of a later version"}}
	must.Same(t, want, table.BestProofs())
	old := []OldTest{{Name: "x", File: "a", Line: 1, Deleted: true, Fails: true}, {Name: "y", File: "a", Fails: true}}
	must.Same(t, old, table.BrokenOldTests())
	must.Same(t, 3, table.UnlistedProofs())
}
