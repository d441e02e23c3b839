// Package files owns the tools for reading: read_file, list_dir, grep_files and view_image. It
// knows the readable places and the presentation of files, folders, searches and images. It writes
// nothing.
//
// It reads through an os.Root, so it never follows a link out of a place, even one created during a call.
package files

import (
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

// Options describes the readable places.
type Options struct {
	Dir      tools.Folder // the working directory, where relative paths start
	Outputs  string       // folder of whole outputs, absolute, which need not be there yet; may be empty
	Checkout Checkout     // that Dir is in
	// View returns the commands' view, for files outside Dir and hidden ones inside. It is called
	// when first needed; nil shows nothing outside.
	View func() (*grants.View, error)
	// Since is the agent's start. Searches list later changes first.
	Since time.Time
}

// Checkout describes git's ignore rules. The zero value uses .gitignore files from Dir down.
type Checkout struct {
	Top        tools.Folder // the work tree, its path without links; Dir is in it
	Exclude    rules.Ignore // of info/exclude
	IgnoreCase bool         // core.ignoreCase
	// Tracked returns git's tracked paths, from Top and sorted by bytes, shown despite ignore
	// rules. It is called concurrently, when first needed; may be nil.
	Tracked func() []string
}

// Ignores reports whether git ignores a file. name is clean, without links, and relative to dir, a
// folder of the checkout.
func (c Checkout) Ignores(dir, name string) (bool, error) {
	prefix, inside := c.Top.Below(dir)
	if !inside {
		return false, nil
	}
	top, err := c.Top.Root()
	if err != nil {
		return false, err
	}
	return c.rules().Ignores(top, filepath.ToSlash(filepath.Join(prefix, name)))
}

// rules are those from outside of the work tree and of git's index.
func (c Checkout) rules() walk.Rules {
	return walk.Rules{Outer: []rules.Ignore{c.Exclude}, IgnoreCase: c.IgnoreCase, Tracked: c.Tracked}
}

// New makes the tools: read_file, list_dir, grep_files, view_image.
func New(o Options) []tools.Tool {
	p := place(o)
	return []tools.Tool{
		Tool(readSpec, p.readFile),
		Tool(listSpec, p.listDir),
		Tool(grepSpec, grepFiles{p, searchTime}.grep),
		Tool(imageSpec, viewImage{p, make(chan struct{}, 1)}.view),
	}
}
