package job

import "slices"

// findingTreatments lists the treatments of a change with a finding, mildest first.
var findingTreatments = []string{"show", "draft", "refuse"}

// StricterTreatment returns the stricter of two treatments. An unknown word counts as the mildest.
func StricterTreatment(a, b string) string {
	if slices.Index(findingTreatments, b) > slices.Index(findingTreatments, a) {
		return b
	}
	return a
}
