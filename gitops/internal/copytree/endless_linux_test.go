package copytree_test

import (
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/internal/copytree"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A file whose file system knows no size may have no end.
func TestCopiesNoEndlessFile(t *testing.T) {
	from, to := must.Get(os.OpenRoot("/proc/self"))(t), must.Get(os.OpenRoot(t.TempDir()))(t)
	defer from.Close()
	defer to.Close()
	must.Do(t, copytree.Folder(t.Context(), to, from, "pagemap")) // 256 GiB
	must.Same(t, regularfile.Small, must.Get(to.Stat("pagemap"))(t).Size())
}
