package runner

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// applyPatches does the work so far again, as far as patches did it.
func (r *run) applyPatches(ctx context.Context) error {
	dir := r.workDir()
	root, err := os.OpenRoot(dir + "/") // which waits for no pipe
	if err != nil {
		return fmt.Errorf("open the working directory: %w", err)
	}
	defer root.Close()
	patcher := patch.New(patch.Options{Dir: dir, Root: root, Offer: tools.Freeform, View: r.boxes.View(), Protect: r.whyProtected})
	for n := 1; n <= r.patches; n++ {
		text, err := r.rec.Read(patchName(n))
		if err != nil {
			return fmt.Errorf("read %s: %w", patchName(n), err)
		}
		result, err := patcher.Apply(ctx, dir, string(text))
		if err != nil {
			return err
		}
		if result.Failed {
			r.rec.Warn("patch_not_repeated", "%s could not be applied again in this checkout: %s", patchName(n), strings.TrimSpace(result.Output))
		}
	}
	return nil
}

func patchName(n int) string { return fmt.Sprintf("%s/%03d.patch", record.PatchesFolder, n) }
