package transcript

import (
	"cmp"
	"slices"
)

// The classes of a test file of a change, by how a check came out with it on the base.
const (
	Proven     = "proven"             // a test of it fails there, and passes with the change
	LoadError  = "red_for_load_error" // it does not compile or load there
	NotRed     = "not_red"            // all of it passes there
	NoTests    = "no_tests"           // nothing of it was run as a test
	FlakyProof = "flaky"              // it failed there in one run and not in another
	Unknown    = "unknown"            // it could not be found out
)

// Proof is the result of a check for the change's test file on the base.
type Proof struct {
	File   string   `json:"file"`
	Class  string   `json:"class"`
	Shared bool     `json:"shared,omitempty"` // the class is of several files together
	Tests  []string `json:"tests,omitempty"`  // that fail on the base, as far as the output names them
	Note   string   `json:"note,omitempty"`   // why, where the class does not say it
	Log    string   `json:"log,omitempty"`    // of the run on the base, below the run directory
}

// OldTest is a test of the base that is missing or fails with the change. It may also be a file
// that a check runs.
type OldTest struct {
	Name  string `json:"name,omitempty"` // empty: the file as a whole
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"` // of the file on the base
	Gone  bool   `json:"gone,omitempty"`
	Fails bool   `json:"fails,omitempty"`
	// Shared reports that the failure may be of this entry or of another shared one.
	Shared bool `json:"shared,omitempty"`
	// Script marks a file run by the check, which only passes with the change's version.
	Script bool `json:"script,omitempty"`
}

// State describes the test's state.
func (o OldTest) State() string {
	switch {
	case o.Script && o.Shared:
		return "a check runs it, and fails with the old versions of this file and others listed here"
	case o.Script:
		return "a check runs it, and fails with its old version"
	case o.Gone && o.Fails:
		return "deleted, and fails on the change"
	case o.Gone:
		return "deleted"
	case o.Shared:
		return "fails on the change, or another of these does"
	}
	return "fails on the change"
}

// proofOrder are the classes by how much they prove.
var proofOrder = []string{Proven, LoadError, FlakyProof, NotRed, Unknown, NoTests}

// rank returns the position of a class, or the last one for an unknown class.
func rank(class string) int {
	if i := slices.Index(proofOrder, class); i >= 0 {
		return i
	}
	return len(proofOrder)
}

// Proofs returns the best class of each test file over all proving checks.
func (v Verify) Proofs() []Proof {
	var all []Proof
	at := map[string]int{}
	for _, row := range v.Rows {
		for _, p := range row.Proof {
			i, known := at[p.File]
			switch {
			case !known:
				at[p.File] = len(all)
				all = append(all, p)
			case rank(p.Class) < rank(all[i].Class):
				all[i] = p
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Proof) int { return cmp.Compare(a.File, b.File) })
	return all
}

// MoreProofs is how many test files of the change have no class, as there are too many.
func (v Verify) MoreProofs() (more int) {
	for _, row := range v.Rows {
		more = max(more, row.ProofMore)
	}
	return more
}

// OldTests returns the missing or failing tests of the base over all proving checks.
func (v Verify) OldTests() []OldTest {
	var all []OldTest
	for _, row := range v.Rows {
		for _, o := range row.OldTests {
			same := func(other OldTest) bool {
				return other.File == o.File && other.Name == o.Name && other.Line == o.Line && other.Script == o.Script
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i].Gone, all[i].Fails = all[i].Gone || o.Gone, all[i].Fails || o.Fails
				continue
			}
			all = append(all, o)
		}
	}
	return all
}

// CountOldTests counts missing or failing tests of the base, and scripts that need the change's
// version.
func (v Verify) CountOldTests() (tests, scripts int) {
	for _, o := range v.OldTests() {
		if o.Script {
			scripts++
		} else {
			tests++
		}
	}
	return tests, scripts
}

// OldTestsUnknown is why more is not known of the tests of the base; empty where all is.
func (v Verify) OldTestsUnknown() string {
	for _, row := range v.Rows {
		if row.OldTestsUnknown != "" {
			return row.OldTestsUnknown
		}
	}
	return ""
}
