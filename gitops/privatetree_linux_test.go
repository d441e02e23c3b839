package gitops_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

func TestPrivateTreeNamesUnreadableFiles(t *testing.T) {
	t.Parallel()
	if !sandboxtest.AsNobody(t) {
		return
	}
	r := rich(t)
	r.Write("cache/locked", "x\n")
	r.Chmod("cache/locked", 0)
	_, _, _, unread := private(t, r.open())
	must.Same(t, []string{"cache/locked"}, unread, "not read")
}
