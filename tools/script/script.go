// Package script owns what scripts in JavaScript get of the calls that they make, in code mode and in js_repl.
package script

import (
	"cmp"
	"fmt"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

// maxValue is how many bytes of JSON one result may have.
const maxValue = 16 << 20

// Settle converts the result of a call for a script: to the object, the text with images, or the text alone. A
// failed call rejects with its object if that is a text, or with the output if there is no object.
func Settle(id int, r tools.Result) message.Settled {
	value := r.Object
	objectText, isText := value.(string)
	switch {
	case isText && r.Failed:
		return message.Settled{ID: id, Error: objectText}
	case value != nil:
	case r.Failed:
		return message.Settled{ID: id, Error: cmp.Or(r.Output, "the call failed")}
	case len(r.Images) > 0:
		images := make([]map[string]string, len(r.Images))
		for i, image := range r.Images {
			images[i] = map[string]string{"image_url": image.URL()}
		}
		value = map[string]any{"text": r.Output, "images": images}
	default:
		value = r.Output
	}
	raw, err := tools.JSON(value)
	if err != nil {
		return message.Settled{ID: id, Error: fmt.Sprintf("the result can't be given to a script: %v", err)}
	}
	if len(raw) > maxValue {
		return message.Settled{ID: id, Error: fmt.Sprintf("the result has more than %d MiB; ask for less", maxValue>>20)}
	}
	return message.Settled{ID: id, Value: raw}
}
