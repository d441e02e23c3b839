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

// strays are what setup commands made in the user's folder and in caches by which programs come to
// code that commands may change.
type strays struct {
	mu    sync.Mutex
	found map[bool][]string // of what sees the workspace, and of what does not
}

// leaveOutStrays has a sandbox beside the agent's not see strays. One that sees nothing of the
// workspace finds nothing to change there.
func (s *Sandboxes) leaveOutStrays(ctx context.Context, o *sandbox.Options, b Beside) (err error) {
	if len(o.Below) == 0 {
		return nil
	}
	folders, sees := s.Changeable(), b.Workspace == BesideRead || b.Workspace == BesideWrite
	if !sees {
		folders = slices.DeleteFunc(folders, func(folder string) bool { return folder == s.Root })
	}
	s.strays.mu.Lock()
	defer s.strays.mu.Unlock()
	if found, known := s.strays.found[sees]; known { // setup commands are over, and nobody else writes there
		o.Gone = found
		return nil
	}
	if o.Gone, err = o.Strays(ctx, folders); err != nil {
		return fmt.Errorf("open the sandbox of %s: %w", b.Name, err)
	}
	if s.strays.found == nil {
		s.strays.found = make(map[bool][]string)
	}
	s.strays.found[sees] = o.Gone
	if len(o.Gone) > 0 {
		s.Record.Warn("setup_leads_back", "Servers, and tools with a network of their own, do not see %s, which setup made in the home folder or in caches: it leads to code that the agent's commands can change. Install what these need as a copy, from outside of the checkout.", firstOf(o.Gone))
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

// InWorkspace says whether a path lies in what the run's commands may write to, or leads there, by
// links of the machine or of setup commands.
func (s *Sandboxes) InWorkspace(path string) bool {
	folders := s.Changeable()
	return LeadsInto(path, folders) || s.folders(Place{Scratch: AgentScratch}).Earlier().LeadsInto(path, folders)
}

// Linked is where a program without a slash in its name is found by an environment's PATH, if a
// link leads from there to what commands can change; empty otherwise.
func (s *Sandboxes) Linked(program string, env []string) string {
	earlier, folders := s.folders(Place{Scratch: AgentScratch}).Earlier(), s.Changeable()
	for _, dir := range filepath.SplitList(settings.Environment(env).Get("PATH")) {
		at := filepath.Join(dir, program)
		if LeadsInto(at, folders) || earlier.LeadsInto(at, folders) { // whether it is there yet or not
			return at
		}
		if info, err := earlier.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			break
		}
	}
	return ""
}
