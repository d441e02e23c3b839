package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
)

// mostAsked limits an output passed to hooks, and its saved copy, in bytes. The model reads only
// text seen by hooks.
const mostAsked = 1 << 20

// outputs saves whole outputs in the run directory, readable by the model. With output hooks they
// are withheld until accepted.
func (a *Agent) outputs() *tools.Outputs {
	o := &tools.Outputs{Redact: a.Record.Redact}
	if a.Child != nil {
		sum := sha256.Sum256([]byte(a.Child.ID))
		o.Of = hex.EncodeToString(sum[:4]) + "-"
	}
	place := func(name string) string { return name }
	if a.Hooks.OfOutputs() {
		o.Held, o.FileLimit, place = held{a.Record}, mostAsked, heldName
	}
	o.Create = func(name string) (io.WriteCloser, string, error) {
		f, err := a.Record.Create(place(name))
		return f, a.Record.Join(name), err
	}
	return o
}

// held stores outputs that hooks have not accepted yet.
type held struct{ *record.Record }

// heldName returns the path of a withheld output.
func heldName(name string) string { return path.Join(record.StateFolder, "held", path.Base(name)) }

func (h held) Read(name string) ([]byte, error) { return h.Record.Read(heldName(name)) }

func (h held) Release(name string) error { return h.Root().Rename(heldName(name), name) }

func (h held) Drop(name string) { _ = h.Root().Remove(heldName(name)) }
