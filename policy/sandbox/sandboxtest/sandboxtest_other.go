//go:build !linux

package sandboxtest

import "testing"

// SkipUnlessOffered skips: only Linux has something to confine with.
func SkipUnlessOffered(t testing.TB, level string, err error) {
	t.Helper()
	t.Skipf("this system has nothing for the level %s: %v", level, err)
}
