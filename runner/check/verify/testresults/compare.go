package testresults

import "slices"

// BaseResults has what is known about a check's tests on the base.
type BaseResults struct {
	Green    bool // the check passed
	Failing  []string
	Complete bool // Failing lists all of them
}

// Change is the difference in tests between base and change, by name.
type Change struct {
	New   []string // tests that fail now and did not before
	Fixed []string // tests that failed before and that the output names as passed
	// Silent lists tests that failed before and that the output does not name, although it would
	// name a failure. Either they passed, or the tool left them out without saying so.
	Silent []string
}

// Compare returns how the tests of a check changed. greenNow means that the check passes now. A failing test is
// new only if the base is green or all its failures are known. Skipped tests are not listed.
func Compare(before BaseResults, now *Results, greenNow bool) Change {
	var c Change
	knowsAllFailures := before.Complete && len(before.Failing) > 0
	if before.Green || knowsAllFailures {
		for _, t := range now.Failing {
			if before.Green || !slices.Contains(before.Failing, t.Name) {
				c.New = append(c.New, t.Name)
			}
		}
	}
	if before.Green {
		return c
	}
	isGreenWithoutNames := greenNow && !now.hasAny()
	counted := map[string]bool{}
	for _, name := range before.Failing {
		if counted[name] {
			continue
		}
		counted[name] = true
		switch {
		case now.isNamedPassed(name):
			c.Fixed = append(c.Fixed, name)
		case isGreenWithoutNames || now.Passed(name):
			c.Silent = append(c.Silent, name)
		}
	}
	return c
}
