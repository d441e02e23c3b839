package job

import (
	"fmt"
	"slices"
	"strings"
)

// neededChecks refuses needs that name no check, and those that no order fulfils.
func (d *decoder) neededChecks() {
	checks := d.job.Verify
	for i, check := range checks {
		for k, name := range check.Needs {
			path := fmt.Sprintf("verify[%d].needs[%d]", i, k)
			if checkNamed(checks, name) < 0 {
				d.complainAt(d.places[path], path, fmt.Sprintf("names no check: there is none called %q", name), Nearest(name, namesOf(checks)))
			}
		}
	}
	for i := range checks {
		if cycle := cycleFrom(checks, i); len(cycle) > 0 && i == slices.Min(cycle) { // once for each
			path := fmt.Sprintf("verify[%d].needs", i)
			d.complainAt(d.places[path], path, "is a circle: "+inCircle(checks, cycle), "")
		}
	}
}

func checkNamed(checks []VerifyCheck, name string) int {
	return slices.IndexFunc(checks, func(c VerifyCheck) bool { return c.Name == name })
}

func namesOf(checks []VerifyCheck) []string {
	var names []string
	for _, check := range checks {
		names = append(names, check.Name)
	}
	return names
}

// cycleFrom are the checks on a way by needs from a check back to it, which comes
// first; nil where there is no way.
func cycleFrom(checks []VerifyCheck, start int) []int {
	seen := make([]bool, len(checks))
	var walk func(at int) []int
	walk = func(at int) []int {
		for _, name := range checks[at].Needs {
			next := checkNamed(checks, name)
			if next == start {
				return []int{at}
			}
			if next < 0 || seen[next] {
				continue
			}
			seen[next] = true
			if way := walk(next); way != nil {
				return append([]int{at}, way...)
			}
		}
		return nil
	}
	return walk(start)
}

func inCircle(checks []VerifyCheck, cycle []int) string {
	var names []string
	for _, i := range append(cycle, cycle[0]) {
		names = append(names, fmt.Sprintf("%q", checks[i].Name))
	}
	return strings.Join(names, " needs ")
}

// provingChecks refuses to require proofs of no check.
func (d *decoder) provingChecks() {
	proves := func(c VerifyCheck) bool { return c.Proves }
	if d.job.RedProof == "require" && !slices.ContainsFunc(d.job.Verify, proves) {
		d.complainAt(d.places["red_proof"], "red_proof", "is require, and no check proves: set verify[].proves of the one that runs the tests", "")
	}
}
