// Package lazyregexp compiles regular expressions when they are first needed: else each start of the program
// pays for all of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles expr at its first call. It panics then if expr is invalid.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
