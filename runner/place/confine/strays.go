package confine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// strays are files made by setup in home and caches that lead programs to code changeable by
// commands.
type strays struct {
	mu    sync.Mutex
	found map[bool][]string // of what sees the workspace, and of what does not
}

// hideStrays hides strays from a sandbox beside the agent's. It does nothing without a
// workspace.
func (s *Sandboxes) hideStrays(ctx context.Context, o *sandbox.Options, b Sidecar) (err error) {
	if len(o.EarlierScratch) == 0 {
		return nil
	}
	folders, sees := s.WritableFolders(), b.Workspace == SidecarRead || b.Workspace == SidecarWrite
	if !sees {
		folders = slices.DeleteFunc(folders, func(folder string) bool { return folder == s.Root })
	}
	s.strays.mu.Lock()
	defer s.strays.mu.Unlock()
	if found, known := s.strays.found[sees]; known { // setup commands are over, and nobody else writes there
		o.RemovedPaths = found
		return nil
	}
	if o.RemovedPaths, err = o.CodePointers(ctx, folders); err != nil {
		return fmt.Errorf("open the sandbox of %s: %w", b.Name, err)
	}
	if s.strays.found == nil {
		s.strays.found = make(map[bool][]string)
	}
	s.strays.found[sees] = o.RemovedPaths
	if len(o.RemovedPaths) > 0 {
		s.Record.Warn("setup_leads_back", "MCP servers, and tools with a network of their own, do not see %s. Setup made it in the home folder or in a cache, and it leads to code that the agent's commands can change. If they need it, install a copy from outside of the checkout.", firstOf(o.RemovedPaths))
	}
	return nil
}

// firstOf are the first few of some paths, for people.
func firstOf(paths []string) string {
	const most = 5
	if len(paths) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
	}
	return strings.Join(paths, ", ")
}

// InWorkspace reports whether a path is in, or leads through links into, commands' writable
// folders.
func (s *Sandboxes) InWorkspace(path string) bool {
	folders := s.WritableFolders()
	return PointsInto(path, folders) || s.folders(Place{Scratch: AgentScratch}).EarlierView().PointsInto(path, folders)
}

// LinkedProgram returns a program's place in an environment's PATH if a link leads from there to
// changeable files, or "".
func (s *Sandboxes) LinkedProgram(program string, env []string) string {
	earlier, folders := s.folders(Place{Scratch: AgentScratch}).EarlierView(), s.WritableFolders()
	for _, dir := range filepath.SplitList(settings.Environment(env).Get("PATH")) {
		at := filepath.Join(dir, program)
		if PointsInto(at, folders) || earlier.PointsInto(at, folders) { // whether it is there yet or not
			return at
		}
		if info, err := earlier.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			break
		}
	}
	return ""
}
