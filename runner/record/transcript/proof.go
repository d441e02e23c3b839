package transcript

import (
	"cmp"
	"slices"
)

// The classes of a changed test file. They follow from the check's result with that file on the
// base.
const (
	Proven     = "proven"             // one of its tests fails on the base and passes with the change
	LoadError  = "red_for_load_error" // it does not compile or load on the base
	NotRed     = "not_red"            // all its tests pass on the base
	NoTests    = "no_tests"           // no test of it ran
	FlakyProof = "flaky"              // it failed on the base in one run and passed in another
	Unknown    = "unknown"            // the class could not be determined
)

// Proof is the class of a changed test file, by one check.
type Proof struct {
	File   string   `json:"file"`
	Class  string   `json:"class"`
	Shared bool     `json:"shared,omitempty"` // the class is that of several files together
	Tests  []string `json:"tests,omitempty"`  // tests that fail on the base, if the output names them
	Note   string   `json:"note,omitempty"`   // a reason that the class does not show
	Log    string   `json:"log,omitempty"`    // of the run on the base, in the run directory
}

// OldTest is a test of the base that is missing or fails with the change. It may also be a file
// that a check runs.
type OldTest struct {
	Name    string `json:"name,omitempty"` // empty for a whole file
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // on the base
	Deleted bool   `json:"gone,omitempty"`
	Fails   bool   `json:"fails,omitempty"`
	// Shared means that several entries were run together: this one or another shared one fails.
	Shared bool `json:"shared,omitempty"`
	// Script means that the file is run by the check, which passes only with the change's version
	// of it.
	Script bool `json:"script,omitempty"`
}

// DescribeState describes what happened to the test, in words.
func (o OldTest) DescribeState() string {
	switch {
	case o.Script && o.Shared:
		return "a check runs it, and fails with the old versions of this file and others listed here"
	case o.Script:
		return "a check runs it, and fails with its old version"
	case o.Deleted && o.Fails:
		return "deleted, and fails on the change"
	case o.Deleted:
		return "deleted"
	case o.Shared:
		return "fails on the change, or another of these does"
	}
	return "fails on the change"
}

// proofOrder lists the classes, best proof first.
var proofOrder = []string{Proven, LoadError, FlakyProof, NotRed, Unknown, NoTests}

// proofRank returns the position of a class in proofOrder, or the last one for an unknown class.
func proofRank(class string) int {
	if i := slices.Index(proofOrder, class); i >= 0 {
		return i
	}
	return len(proofOrder)
}

// BestProofs returns the best class of each test file, over all proving checks, sorted by file.
func (v Verify) BestProofs() (all []Proof) {
	indexOf := map[string]int{}
	for _, row := range v.Rows {
		for _, p := range row.Proof {
			i, known := indexOf[p.File]
			switch {
			case !known:
				indexOf[p.File] = len(all)
				all = append(all, p)
			case proofRank(p.Class) < proofRank(all[i].Class):
				all[i] = p
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Proof) int { return cmp.Compare(a.File, b.File) })
	return all
}

// UnlistedProofs returns how many test files have no class because there are too many.
func (v Verify) UnlistedProofs() (unlisted int) {
	for _, row := range v.Rows {
		unlisted = max(unlisted, row.ProofMore)
	}
	return unlisted
}

// BrokenOldTests returns the missing or failing tests of the base, over all proving checks.
func (v Verify) BrokenOldTests() (all []OldTest) {
	for _, row := range v.Rows {
		for _, o := range row.OldTests {
			same := func(other OldTest) bool {
				return other.File == o.File && other.Name == o.Name && other.Line == o.Line && other.Script == o.Script
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i].Deleted, all[i].Fails = all[i].Deleted || o.Deleted, all[i].Fails || o.Fails
				continue
			}
			all = append(all, o)
		}
	}
	return all
}

// CountBrokenOldTests counts missing or failing tests of the base. scripts counts files that a check
// needs in the change's version.
func (v Verify) CountBrokenOldTests() (tests, scripts int) {
	for _, o := range v.BrokenOldTests() {
		if o.Script {
			scripts++
		} else {
			tests++
		}
	}
	return tests, scripts
}

// OldTestsGap returns why the list of old tests is incomplete, or "".
func (v Verify) OldTestsGap() string {
	for _, row := range v.Rows {
		if row.OldTestsUnknown != "" {
			return row.OldTestsUnknown
		}
	}
	return ""
}
