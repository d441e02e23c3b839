package timeline

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

func TestEveryEventTypeHasRow(t *testing.T) {
	source := must.Get(os.ReadFile("../event.go"))(t)
	types := regexp.MustCompile(`(?m)^\tType\w+ +Type = "([a-z_.]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(types) < 30 {
		t.Fatalf("found %d types", len(types))
	}
	for _, m := range types {
		kind := transcript.Type(m[1])
		event := transcript.Decode(eventlog.Event{Type: kind, Data: []byte("{}")})
		e := Describe(event)
		unknown := reflect.DeepEqual(e, detail("**%s**", string(kind)))
		if (event.Damage != nil || unknown) && kind != transcript.TypeModelResponse {
			t.Errorf("%s has no row: %v", kind, event.Damage)
		}
	}
}
