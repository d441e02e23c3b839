// Package golden compares results of tests with files in the repository.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

var update = flag.Bool("update", false, "rewrite the golden files and the generated parts of the documentation")

// Compare fails unless the file at path holds got. With -update it writes the file first.
func Compare[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		must.Write(t, path, string(got))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Same(t, string(want), string(got), path, "differs; go test with -update rewrites it")
}
