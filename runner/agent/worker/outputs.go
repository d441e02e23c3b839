package worker

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

// outputs returns where complete outputs are saved: in the run directory, where the model can read them. If there are
// hooks on outputs, a saved output stays elsewhere until they accept it.
func (a *Agent) outputs() *tools.Outputs {
	o := &tools.Outputs{Redact: a.Record.Redact}
	if a.Child != nil {
		o.NamePrefix = fmt.Sprintf("%.4x-", sha256.Sum256([]byte(a.Child.ID)))
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

// withheldName returns where an output is saved until hooks accept it, relative to the run directory.
func withheldName(name string) string { return path.Join(record.StateFolder, "held", path.Base(name)) }

func (h withheldOutputs) Read(name string) ([]byte, error) { return h.Record.Read(withheldName(name)) }

func (h withheldOutputs) Release(name string) error { return h.Root().Rename(withheldName(name), name) }

func (h withheldOutputs) Drop(name string) { _ = h.Root().Remove(withheldName(name)) }
