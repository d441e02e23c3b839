package hooks

import (
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// patchesIn are the patches that commands of a call apply, each by a command that does nothing
// else, as they read from the working directory.
func (h *Hooks) patchesIn(tool string, call tools.Call) (all []string) {
	if !tools.RunsCommands(tool) || tool == dialect.WriteStdin {
		return nil
	}
	asked, _ := command.Of(tool, call)
	for _, each := range asked {
		if each.Patch != "" {
			all = append(all, h.fromWorkDir(each.Dir, each.Patch))
		}
	}
	return all
}

// fromWorkDir is a patch, whose paths are relative to a folder, as it reads from the working
// directory. What is no patch is as it is: it is not applied.
func (h *Hooks) fromWorkDir(dir, text string) string {
	if _, is := tools.Below(h.Facts.WorkDir, dir); filepath.IsAbs(dir) && !is {
		if real, err := filepath.EvalSymlinks(dir); err == nil { // as it is applied there
			dir = real
		}
	}
	renamed, err := v4a.Rename(text, func(name string) string { return h.pathFromWorkDir(dir, name) })
	if err != nil {
		return text
	}
	return renamed
}

// pathFromWorkDir is a path without . and .. in it, relative to the working directory, or absolute
// where it leads elsewhere. Links are not followed.
func (h *Hooks) pathFromWorkDir(dir, name string) string {
	at := filepath.FromSlash(name)
	for _, from := range []string{dir, h.Facts.WorkDir} {
		if !filepath.IsAbs(at) {
			at = filepath.Join(from, at)
		}
	}
	at = filepath.Clean(at)
	if inside, is := tools.Below(h.Facts.WorkDir, at); is {
		at = inside
	}
	return filepath.ToSlash(at)
}
