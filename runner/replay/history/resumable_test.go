package history

import (
	"reflect"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// A limit that the job has, and a run that goes on does not take, would be given
// in vain.
func TestAcceptsEachLimit(t *testing.T) {
	values := map[string]string{"cost_usd": "1.5", "time": "7m", "on_budget": "draft"}
	limits := reflect.TypeFor[job.Limits]()
	for i := range limits.NumField() {
		name := limits.Field(i).Tag.Get("json")
		t.Run(name, func(t *testing.T) {
			value := values[name]
			if value == "" {
				value = "7"
			}
			taken, err := settings.SetLimits(job.Limits{}, []string{"limits." + name + "=" + value})
			if err != nil {
				t.Fatal(err)
			}
			if reflect.ValueOf(taken).Field(i).IsZero() {
				t.Errorf("limits.%s=%s is not taken: %+v", name, value, taken)
			}
			if limits.Field(i).Type.Kind() != reflect.String && settings.LimitOf(taken, "limits."+name) == 0 {
				t.Errorf("limits.%s cannot be told from what it was", name)
			}
		})
	}
}
