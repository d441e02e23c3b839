// Package recordtest makes records of runs for tests.
package recordtest

import (
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record"
)

// New returns a record with a run directory. It is closed when the test ends.
func New(t testing.TB, id string, known ...secrets.Value) *record.Record {
	t.Helper()
	rec := record.New(id, known)
	must.Do(t, rec.Make(filepath.Join(t.TempDir(), "run"), nil))
	t.Cleanup(rec.Close)
	return rec
}
