package repl

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// mostLine is how many bytes a line of the kernel may have: more than an image of the largest size.
const mostLine = 32 << 20

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

// order is a line that has the kernel run code.
type order struct {
	Type string `json:"type"` // run
	Cell int    `json:"cell"`
	Code string `json:"code"`
	Mark string `json:"mark"` // to print behind all that the code prints
}

// answer is a line that answers a call.
type answer struct {
	Type   string `json:"type"` // answer
	Call   int    `json:"call"`
	Failed bool   `json:"failed"`
	Text   string `json:"text"`
	Object any    `json:"object,omitempty"`
}

var frameTypes = map[string]bool{"tool": true, "image": true, "done": true}

// receive hands on what the kernel sends, until that is no frame.
func (k *kernel) receive(from io.Reader) error {
	defer close(k.frames)
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := nextLine(lines)
		if err != nil {
			k.broke = errors.Is(err, errLongLine)
			return nil
		}
		var f frame
		if json.Unmarshal(line, &f) != nil || !frameTypes[f.Type] {
			k.broke = true
			return nil
		}
		select {
		case k.frames <- f:
		case <-k.left:
			return nil
		}
	}
}

var errLongLine = errors.New("the line is too long")

func nextLine(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		if len(line)+len(part) > mostLine {
			return nil, errLongLine
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
