package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allKeys are the keys of the format, elements of lists included, in order.
func allKeys(k *key) []*key {
	var found []*key
	for _, below := range k.keys {
		found = append(found, below)
		found = append(found, allKeys(below)...)
		if below.elem != nil {
			found = append(found, allKeys(below.elem)...)
		}
	}
	return found
}

func TestRulesNameEachFieldOnceInOrder(t *testing.T) {
	var fields, named []string
	for _, k := range allKeys(root()) {
		fields = append(fields, k.path)
	}
	for _, r := range rules {
		named = append(named, r.path)
	}
	if diff := cmp.Diff(fields, named); diff != "" {
		t.Errorf("rules (-fields +rules):\n%s", diff)
	}
}

func TestEachRuleFitsItsKey(t *testing.T) {
	for _, k := range allKeys(root()) {
		if k.about == "" {
			t.Errorf("%s: nothing says what it means", k.path)
		}
		if k.kind == integer && k.span == nil {
			t.Errorf("%s: a number without bounds", k.path)
		}
		if k.kind == textMap && (k.names == nil || k.form == nil) {
			t.Errorf("%s: a mapping whose names or values may be anything", k.path)
		}
		if k.kind == text && k.form == nil && k.values == nil {
			t.Errorf("%s: a text that may be anything", k.path)
		}
		if k.kind == text && k.values != nil && !k.required {
			if complaint, _ := k.judgeText(k.defaultValue().String()); complaint != "" {
				t.Errorf("%s: its own default %s", k.path, complaint)
			}
		}
	}
}
