// Package files holds the tools for reading: read_file, list_dir, grep_files and view_image. It knows which places are
// readable and how to show files, folders, searches and images. It writes nothing.
//
// It reads through an os.Root, so that it never follows a link out of a place, even one created during a call.
package files

import (
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

// Options say which files the tools may read.
type Options struct {
	Dir      tools.Folder // the working directory, where relative paths start
	Outputs  string       // absolute path of the folder with saved outputs, which may not exist yet; may be empty
	Checkout Checkout     // the checkout that contains Dir
	// View returns which files commands can see, inside and outside of Dir. If View is nil, all files in Dir are
	// readable, and none outside of it.
	View func() (*grants.View, error)
	// Since is when the agent started. Searches list files changed after that first.
	Since time.Time
}

// Checkout describes git's ignore rules. The zero value uses .gitignore files from Dir down.
type Checkout struct {
	Top        tools.Folder // the work tree, which contains Dir; its path has no links
	Exclude    rules.Ignore // of info/exclude
	IgnoreCase bool         // core.ignoreCase
	// Tracked returns the paths that git tracks, relative to Top and sorted by bytes. They are shown despite ignore
	// rules. It is called concurrently, at its first use. It may be nil.
	Tracked func() []string
}

// Ignores reports whether git ignores a file. name is a clean path without links, relative to dir, a folder of the
// checkout.
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

// rules returns the ignore rules that come from outside the work tree, and the tracked paths.
func (c Checkout) rules() walk.Rules {
	return walk.Rules{Outer: []rules.Ignore{c.Exclude}, IgnoreCase: c.IgnoreCase, Tracked: c.Tracked}
}

// New returns the tools read_file, list_dir, grep_files and view_image.
func New(o Options) []tools.Tool {
	return []tools.Tool{
		Tool(readSpec, o.readFile),
		Tool(listSpec, o.listDir),
		Tool(grepSpec, grepFiles{o, searchTime}.grep),
		Tool(imageSpec, viewImage{o, make(chan struct{}, 1)}.view),
	}
}
