package gitops_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
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
	gittest.Same(t, "not read", []string{"cache/locked"}, unread)
}
