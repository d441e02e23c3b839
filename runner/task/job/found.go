package job

import "slices"

// foundTreatments are what can become of a change in which something was found, from the mildest.
var foundTreatments = []string{"show", "draft", "refuse"}

// Stricter returns the stricter of two of show, draft and refuse. A word that is none of them counts as the
// mildest.
func Stricter(a, b string) string {
	if slices.Index(foundTreatments, b) > slices.Index(foundTreatments, a) {
		return b
	}
	return a
}
