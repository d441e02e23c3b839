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
	Mended []string // failed before, and the output names them as passed
	// Silent failed before, and the output does not name them, though it would if they
	// failed: they passed, or were left out where the tool doesn't tell that.
	Silent []string
}

// Compare tells what of the results is new since before. A test is new only where the
// base is known: it is green, or names all tests that fail there. One that was skipped,
// or that wasn't run as far as can be told, is neither.
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
		case now.Passed(name) || green && !now.Known():
			c.Silent = append(c.Silent, name)
		}
		told[name] = true
	}
	return c
}
