// Package files owns the tools that look at files: read_file, list_dir,
// grep_files and view_image. It knows which places may be read and how a file,
// a folder, a search and an image are shown; it writes nothing.
//
// Each place is read through an os.Root, so a link that leads out of it is not
// followed, whatever changes while a call is under way.
package files

import (
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

// Options say what may be read.
type Options struct {
	Dir      tools.Folder // the working directory, where relative paths start
	Outputs  string       // folder of whole outputs, absolute, which need not be there yet; may be empty
	Checkout Checkout     // that Dir is in
	// View is what commands see outside of Dir, and what they don't see in it. It
	// is asked when it is first needed; nil shows nothing outside.
	View func() (*grants.View, error)
	// Since is when the agent began. A search lists what changed since first.
	Since time.Time
}

// Checkout says what git ignores. The zero value knows the .gitignore files
// from Dir down.
type Checkout struct {
	Top        tools.Folder // the work tree, its path without links; Dir is in it
	Exclude    rules.Ignore // of info/exclude
	IgnoreCase bool         // core.ignoreCase
	// Tracked gives the paths of the files that git tracks, from Top and sorted
	// by bytes: they are shown even where a pattern ignores them. It is called
	// from several goroutines and when it is first needed; it may be nil.
	Tracked func() []string
}

// Ignores says whether git leaves out a file, whose path is clean, without links
// and relative to dir, a folder of the checkout.
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
		tool(readSpec, p.readFile),
		tool(listSpec, p.listDir),
		tool(grepSpec, grepFiles{p, searchTime}.grep),
		tool(imageSpec, viewImage{p, make(chan struct{}, 1)}.view),
	}
}
