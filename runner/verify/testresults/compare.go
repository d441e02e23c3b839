package testresults

import "slices"

// Before is what is known of the tests of a check on the base.
type Before struct {
	Green    bool // the check passed
	Failing  []string
	Complete bool // Failing has all of them
}

// Change is what became of tests, by their names.
type Change struct {
	New    []string // fail now and did not before
	Mended []string // failed before and pass now
}

// Compare tells what of the results is new since before. A test is new only where the
// base is known: it is green, or names all tests that fail there. One is mended only
// where the output tells that it passed, or the check is green and its output tells of
// no test at all; not where the tests just weren't run.
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
	for _, name := range before.Failing {
		if (now.Passed(name) || green && !now.Known()) && !slices.Contains(c.Mended, name) {
			c.Mended = append(c.Mended, name)
		}
	}
	return c
}
