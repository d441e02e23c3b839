package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// git in an overlay finds the stat data that its index has, wherever the changes lie:
// diff-files, which reads no file, tells of those that others are found for.
func TestOverlayKeepsGitStatData(t *testing.T) {
	gittest.Program(t) // or skip
	for name, where := range map[string]string{"changes beside it": "", "changes in memory": "/dev/shm"} {
		t.Run(name, func(t *testing.T) {
			box, o := confined(t, "full", func(o *Options) {
				overlaid(t)(o)
				if o.DenyRead = nil; where != "" {
					o.Overlay = folderElsewhere(t, where, o.Workspace)
				}
				must.Do(t, os.RemoveAll(filepath.Join(o.Workspace, ".git")))
				repo := gittest.Repo{T: t, Dir: o.Workspace}
				repo.Git("init", "-q")
				repo.Git("add", "-A")
			})
			must.Same(t, "dir/one\ndeep/in/hidden\ndir/one\n", run(t, box, o, `git diff-files --name-only; echo more >>dir/one; git diff-files --name-only; rm -r deep; git diff-files --name-only`), "files with other stat data than git's")
		})
	}
}

// folderElsewhere makes a folder that is on another file system than dir.
func folderElsewhere(t *testing.T, where, dir string) string {
	t.Helper()
	var here, there syscall.Stat_t
	if syscall.Stat(dir, &here) != nil || syscall.Stat(where, &there) != nil || here.Dev == there.Dev {
		t.Skip(where + " is no other file system")
	}
	made, err := os.MkdirTemp(where, "overlay-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = RemoveScratch(made) })
	return filepath.Join(made, "overlay")
}
