package job

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

// allKeys are the keys of the format, elements of lists included, in order.
func allKeys(k *config.Key) []*config.Key {
	var found []*config.Key
	for _, below := range k.Keys {
		found = append(found, below)
		found = append(found, allKeys(below)...)
		if below.Elem != nil {
			found = append(found, allKeys(below.Elem)...)
		}
	}
	return found
}

func TestEveryKeyIsDescribedAndBounded(t *testing.T) {
	for _, k := range allKeys(Format().Root) {
		if k.Meaning == "" {
			t.Errorf("%s: nothing says what it means", k.Path)
		}
		if k.Shape == config.Integer && k.Span == nil {
			t.Errorf("%s: a number without bounds", k.Path)
		}
		if k.Shape == config.TextMap && (k.Names == nil || k.Form == nil) {
			t.Errorf("%s: a mapping whose names or values may be anything", k.Path)
		}
		if k.Shape == config.Text && k.Form == nil && k.Values == nil {
			t.Errorf("%s: a text that may be anything", k.Path)
		}
		if text := k.Default(); k.Shape == config.Text && !k.Required && (k.Values != nil || text.String() != "") {
			if complaint, _ := k.TextProblem(text.String()); complaint != "" {
				t.Errorf("%s: its own default %s", k.Path, complaint)
			}
		}
		if list := k.Default(); k.Shape == config.List && k.Elem.Shape == config.Text {
			for i := range list.Len() {
				if complaint, _ := k.Elem.TextProblem(list.Index(i).String()); complaint != "" {
					t.Errorf("%s: its own default %q %s", k.Path, list.Index(i), complaint)
				}
			}
		}
	}
}
