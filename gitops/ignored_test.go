package gitops_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProvidesIgnoreRules(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, name := range []string{"b", "a-b", "a/x", "build/kept"} {
		r.Write(name, name)
	}
	r.Write(".git/info/exclude", "build/\n")
	r.Git("add", "-f", ".")
	r.Git("commit", "-qm", "first")
	r.Write("untracked", "")
	r.Git("config", "core.ignoreCase", "true")
	c := r.open()
	tracked, err := c.Tracked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-b", "a/x", "b", "build/kept"}, tracked); diff != "" {
		t.Errorf("tracked (-want +got):\n%s", diff)
	}
	if ignored, decided := c.ExcludeRules().Decide("build", true, false); !ignored || !decided {
		t.Error("info/exclude is not read")
	}
	if !c.IgnoresCase() {
		t.Error("core.ignoreCase is not read")
	}
}
