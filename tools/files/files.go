// Package files owns the tools that look at files: read_file. It knows which
// places may be read and how a text file is shown; it writes nothing.
//
// Each place is read through an os.Root, so a link that leads out of it is not
// followed, whatever changes while a call is under way.
package files

import (
	"os"

	"github.com/agent-ci/agent-ci/tools"
)

// Options say what may be read.
type Options struct {
	Dir     string   // working directory, absolute; where relative paths start
	Root    *os.Root // of Dir; the caller closes it when no call runs any more
	Outputs string   // folder of whole outputs, absolute, which need not be there yet; may be empty
}

// New makes the tools: read_file.
func New(o Options) []tools.Tool {
	return []tools.Tool{readFile{place{dir: o.Dir, root: o.Root, outputs: o.Outputs}}}
}
