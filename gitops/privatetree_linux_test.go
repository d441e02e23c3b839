package gitops_test

import (
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
)

func TestAPrivateTreeNamesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 && !gittest.AsOrdinaryUser(t) {
		return
	}
	r := rich(t)
	r.Write("cache/locked", "x\n")
	r.Chmod("cache/locked", 0)
	_, _, _, unread := private(t, r.open())
	gittest.Same(t, "not read", []string{"cache/locked"}, unread)
}
