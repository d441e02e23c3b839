// Package golden compares results of tests with files in the repository.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

var update = flag.Bool("update", false, "rewrite the golden files and the generated parts of the documentation")

// Compare fails unless the file at path holds got. With -update it writes the file first.
func Compare[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Same(t, string(want), string(got), path, "differs (-want +got); go test with -update rewrites it")
}
