package repl

import (
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/tools/script/message"
)

// frame is a line of the kernel.
type frame struct {
	Type     string `json:"type"` // tool, image, done
	Cell     int    `json:"cell"`
	Call     int    `json:"call"` // that waits for an answer
	Name     string `json:"name"` // of a tool
	Input    string `json:"input"`
	Freeform bool   `json:"freeform"`
	Failed   bool   `json:"failed"` // the code threw
}

// order makes the kernel run code.
type order struct {
	Type string `json:"type"` // run
	Cell int    `json:"cell"`
	Code string `json:"code"`
	Mark string `json:"mark"` // to print behind all that the code prints
}

var frameTypes = map[string]bool{"tool": true, "image": true, "done": true}

// receive handles the kernel's frames until an invalid one.
func (k *kernel) receive(from io.Reader) error {
	defer close(k.frames)
	for lines := message.NewReader(from); ; {
		var f frame
		err := lines.Read(&f)
		if err != nil || !frameTypes[f.Type] {
			k.broke = !errors.Is(err, io.EOF)
			return nil
		}
		select {
		case k.frames <- f:
		case <-k.left:
			return nil
		}
	}
}
