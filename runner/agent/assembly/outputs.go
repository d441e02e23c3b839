package assembly

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
)

// maxHookOutputBytes is the maximum size of an output that hooks see, and of its saved copy, in bytes. Both are equal,
// because the model must read only text that hooks have seen.
const maxHookOutputBytes = 1 << 20

// outputs returns the store for complete outputs of tools: files in the run directory that the model can read. If hooks
// review outputs, a file stays in another folder until they accept it.
func (a *Agent) outputs() *tools.Outputs {
	o := &tools.Outputs{Redact: a.Record.Redact}
	if a.Subagent != nil {
		o.NamePrefix = fmt.Sprintf("%.4x-", sha256.Sum256([]byte(a.Subagent.Description.ID)))
	}
	place := func(name string) string { return name }
	if a.Hooks.HasOutputHooks() {
		o.WithheldFiles, o.FileLimit, place = withheldOutputs{a.Record}, maxHookOutputBytes, withheldName
	}
	o.Create = func(name string) (io.WriteCloser, string, error) {
		f, err := a.Record.Create(place(name))
		return f, a.Record.Join(name), err
	}
	return o
}

// withheldOutputs stores outputs that hooks have not accepted yet.
type withheldOutputs struct{ *record.Record }

// withheldName returns the path of an output that hooks have not accepted yet, relative to the run directory.
func withheldName(name string) string { return path.Join(record.StateFolder, "held", path.Base(name)) }

// Read returns an output that is withheld.
func (h withheldOutputs) Read(name string) ([]byte, error) { return h.Record.Read(withheldName(name)) }

// Release moves an output to where the model can read it.
func (h withheldOutputs) Release(name string) error { return h.Root().Rename(withheldName(name), name) }

// Drop deletes an output that is withheld.
func (h withheldOutputs) Drop(name string) { _ = h.Root().Remove(withheldName(name)) }
