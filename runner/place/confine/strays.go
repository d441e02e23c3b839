package confine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// strays caches the files in home and caches that setup made and that lead programs to code which commands
// may change.
type strays struct {
	mu    sync.Mutex
	found map[bool][]string // by whether the sidecar sees the workspace
}

// hideStrays hides strays from a sidecar. It does nothing if the sidecar does not see setup's
// files.
func (s *Sandboxes) hideStrays(ctx context.Context, o *sandbox.Options, b Sidecar) (err error) {
	if len(o.EarlierScratch) == 0 {
		return nil
	}
	folders := s.WritableFolders()
	if !b.seesWorkspace() { // a sidecar that does not see the workspace can't be led into it
		folders = slices.DeleteFunc(folders, func(folder string) bool { return folder == s.Root })
	}
	strays := &s.sidecars.strays
	strays.mu.Lock()
	defer strays.mu.Unlock()
	if found, known := strays.found[b.seesWorkspace()]; known { // the list is final: setup is over, and nothing else writes there
		o.RemovedPaths = found
		return nil
	}
	if o.RemovedPaths, err = o.CodePointers(ctx, folders); err != nil {
		return fmt.Errorf("open the sandbox of %s: %w", b.Name, err)
	}
	if strays.found == nil {
		strays.found = make(map[bool][]string)
	}
	strays.found[b.seesWorkspace()] = o.RemovedPaths
	if len(o.RemovedPaths) > 0 {
		s.Record.Warn("setup_leads_back", "MCP servers, and tools with a network of their own, do not see %s. Setup made it in the home folder or in a cache, and it leads to code that the agent's commands can change. If they need it, install a copy from outside of the checkout.", clip.Some(o.RemovedPaths, 5))
	}
	return nil
}

// InWorkspace reports whether a path is in folders that commands may write to, or leads there
// through links.
func (s *Sandboxes) InWorkspace(path string) bool {
	folders := s.WritableFolders()
	return PointsInto(path, folders) || s.fileAccess(Place{Scratch: AgentScratch}).EarlierLayers().PointsInto(path, folders)
}

// LinkedProgram searches PATH for a program. If the first match leads through a link to files that
// commands may change, it returns that path. Otherwise it returns "".
func (s *Sandboxes) LinkedProgram(program string, env []string) string {
	earlier, folders := s.fileAccess(Place{Scratch: AgentScratch}).EarlierLayers(), s.WritableFolders()
	for _, dir := range filepath.SplitList(settings.Environment(env).Get("PATH")) {
		path := filepath.Join(dir, program)
		if PointsInto(path, folders) || earlier.PointsInto(path, folders) { // even a missing file counts: commands could make it
			return path
		}
		if info, err := earlier.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			break
		}
	}
	return ""
}
