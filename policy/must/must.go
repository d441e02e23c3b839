// Package must has what most tests check: that a call does not fail, that a result is the expected
// one, and that a text has certain parts.
package must

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Get returns the value of a call. It ends the test if the call failed.
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Do ends the test if there is an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same reports the differences between want and got, after words that name what differs. The test
// continues.
func Same(t testing.TB, want, got any, words ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(fmt.Sprint(words...) + " (-want +got):\n" + diff)
	}
}

// Contain reports the parts that a text lacks. The test continues.
func Contain(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}
