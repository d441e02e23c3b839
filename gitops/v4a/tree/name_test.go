package tree_test

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestIn(t *testing.T) {
	patch := parsed(t, "*** Update File: a\n*** Move to: ../b\n@@\n-x\n*** Delete File: /c\n")
	must.Same(t, []string{"d/e/a", "d/b", "/c"}, v4a.Paths(tree.In("d/e", patch)))
	must.Same(t, []string{"a", "../b", "/c"}, v4a.Paths(tree.In(".", patch)))
}

// A path that can only be a directory's is refused from everywhere.
func TestInKeepsRefusals(t *testing.T) {
	for _, name := range []string{"new/", "new/.", "new/..", ".", "./", "new/x/..", "..", "../.."} {
		for _, dir := range []string{".", "sub"} {
			err := commit(t, t.TempDir(), tree.In(dir, parsed(t, "*** Add File: "+name+"\n+x\n")))
			if _, ok := errors.AsType[*tree.PathError](err); !ok {
				t.Errorf("%q in %q: error = %v", name, dir, err)
			}
		}
	}
}
