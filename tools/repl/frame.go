package repl

import (
	"errors"
	"io"

	"github.com/agent-ci/agent-ci/tools/script/message"
)

// frame is a message from the kernel, one per line.
type frame struct {
	Type     string `json:"type"` // tool, image, done
	Cell     int    `json:"cell"`
	Call     int    `json:"call"` // number of the call that waits for an answer
	Name     string `json:"name"` // name of the tool to call
	Input    string `json:"input"`
	Freeform bool   `json:"freeform"`
	Failed   bool   `json:"failed"` // the code threw
}

// order is a message that tells the kernel to run code.
type order struct {
	Type string `json:"type"` // run
	Cell int    `json:"cell"`
	Code string `json:"code"`
	Mark string `json:"mark"` // text to print after the output of the code
}

var frameTypes = map[string]bool{"tool": true, "image": true, "done": true}

// receive passes the kernel's messages to k.frames until the kernel ends or sends an invalid one.
func (k *kernel) receive(from io.Reader) error {
	defer close(k.frames)
	for lines := message.NewReader(from); ; {
		var f frame
		err := lines.Read(&f)
		if err != nil || !frameTypes[f.Type] {
			k.sentInvalid = !errors.Is(err, io.EOF)
			return nil
		}
		k.frames <- f
	}
}
