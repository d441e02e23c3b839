package runner

import (
	"reflect"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// A limit that the job has, and a run that goes on does not take, would be given
// in vain.
func TestEachLimitIsTaken(t *testing.T) {
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

// Another version describes other tools and gives other orders: a conversation that changes both
// halfway is nobody's.
func TestARecordOfAnotherVersionIsNotResumed(t *testing.T) {
	times := 0
	o := counting(t, counter(&times))
	o.Version, o.Set = "v1", append(o.Set, "limits.turns=1")
	if result := Run(t.Context(), o); result.Outcome != outcome.BudgetExceeded {
		t.Fatalf("%s: %s", result.Outcome, result.Message)
	}
	dir, err := record.OpenDirectory(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	again := ResumeOptions{RunDir: o.Out, Replay: o.Replay, Tools: o.Tools, Set: []string{"limits.turns=9"}, Surroundings: o.Surroundings}
	again.Version = "v2"
	const want = "agent-ci v1 recorded it, and this is v2; resume it with v1, or start a new run"
	if err := Resumable(dir, "v2"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Resumable: %v", err)
	}
	if result := Resume(t.Context(), again); result.Reason != "not_resumable" || !strings.Contains(result.Message, want) {
		t.Errorf("another version: %s: %s", result.Reason, result.Message)
	}
	again.Version = "v1"
	if result := Resume(t.Context(), again); result.Outcome != outcome.NoChanges {
		t.Errorf("the same version: %s: %s", result.Outcome, result.Message)
	}
}
