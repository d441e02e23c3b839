package testresults

import "slices"

// Before is the knowledge of a check's tests on the base.
type Before struct {
	Green    bool // the check passed
	Failing  []string
	Complete bool // Failing has all of them
}

// Change is the difference in tests, by name.
type Change struct {
	New    []string // fail now and did not before
	Mended []string // failed before, and the output names them as passed
	// Silent lists tests that failed before and are not in the output, though a failure would be:
	// they passed, or were omitted by a tool that does not say so.
	Silent []string
}

// Compare finds new results. A test is new only if the base is green or all its failures are known.
// Skipped or unrun tests are neither.
func Compare(before Before, now *Results, green bool) Change {
	var c Change
	if before.Green || len(before.Failing) > 0 && before.Complete {
		for _, t := range now.Failing {
			if before.Green || !slices.Contains(before.Failing, t.Name) {
				c.New = append(c.New, t.Name)
			}
		}
	}
	if before.Green {
		return c
	}
	told := map[string]bool{}
	for _, name := range before.Failing {
		switch {
		case told[name]:
		case now.named(name):
			c.Mended = append(c.Mended, name)
		case now.Passed(name) || green && !now.known():
			c.Silent = append(c.Silent, name)
		}
		told[name] = true
	}
	return c
}
