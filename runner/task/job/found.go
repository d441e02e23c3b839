package job

import "slices"

// foundTreatments lists the treatments of a change with a finding, mildest first.
var foundTreatments = []string{"show", "draft", "refuse"}

// Stricter returns the stricter of a and b, each one of show, draft and refuse. Any other word
// counts as the mildest.
func Stricter(a, b string) string {
	if slices.Index(foundTreatments, b) > slices.Index(foundTreatments, a) {
		return b
	}
	return a
}
