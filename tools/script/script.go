// Package script owns the results that scripts in JavaScript get for their calls, in code mode and in js_repl.
package script

import (
	"cmp"
	"fmt"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

// maxValue is the maximum size of a result in bytes of JSON.
const maxValue = 16 << 20

// Settle converts the result of the call id for a script. The script gets the object if there is one, or else the
// output, together with any images. A failed call is an error for the script if its object is nil or a text.
func Settle(id int, r tools.Result) message.Settled {
	value := r.Object
	objectText, isText := value.(string)
	switch {
	case isText && r.Failed:
		return message.Settled{ID: id, Error: objectText}
	case value != nil: // also of a failed call
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
	raw, err := plainjson.Marshal(value)
	if err != nil {
		return message.Settled{ID: id, Error: fmt.Sprintf("the result can't be given to a script: %v", err)}
	}
	if len(raw) > maxValue {
		return message.Settled{ID: id, Error: fmt.Sprintf("the result has more than %d MiB; ask for less", maxValue>>20)}
	}
	return message.Settled{ID: id, Value: raw}
}
