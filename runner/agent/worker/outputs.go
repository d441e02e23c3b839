package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
)

// maxHookOutputBytes limits an output passed to hooks, and its saved copy, in bytes. The model reads only
// text seen by hooks.
const maxHookOutputBytes = 1 << 20

// outputs saves whole outputs in the run directory, readable by the model. With output hooks they
// are withheld until accepted.
func (a *Agent) outputs() *tools.Outputs {
	o := &tools.Outputs{Redact: a.Record.Redact}
	if a.Child != nil {
		sum := sha256.Sum256([]byte(a.Child.ID))
		o.NamePrefix = hex.EncodeToString(sum[:4]) + "-"
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

// withheldName returns the path of a withheld output.
func withheldName(name string) string { return path.Join(record.StateFolder, "held", path.Base(name)) }

func (h withheldOutputs) Read(name string) ([]byte, error) { return h.Record.Read(withheldName(name)) }

func (h withheldOutputs) Release(name string) error { return h.Root().Rename(withheldName(name), name) }

func (h withheldOutputs) Drop(name string) { _ = h.Root().Remove(withheldName(name)) }
