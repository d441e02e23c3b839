package main_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestWaitForModelCountsAfterKill kills a run that waits for the model.
func TestWaitForModelCountsAfterKill(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	asked := make(chan time.Time, 1)
	w.gate.answer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body) // the server sees a client leave once the body is read
		asked <- time.Now()
		<-r.Context().Done()
	}))
	var alive time.Time
	w.watched(func(program *os.Process) func() {
		ended, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case at := <-asked:
				alive = w.aliveAfter(at, "out", ended)
				_ = program.Kill()
			case <-ended:
			}
		}()
		return func() { close(ended); <-done }
	}, "run", "--prompt", "x", "--repo", w.checkout("repo"), "--out", "out", "--publish", "none", "--quiet")

	w.gate.answer(stepwise(0))
	w.agent(0, "resume", "out", "--quiet")
	first, resumed := w.lifeOf("out")
	if want := alive.Sub(first).Seconds(); resumed.Seconds < want-0.001 {
		t.Errorf("the run lived %.3f s when it was killed, and %.3f s count", want, resumed.Seconds)
	}
}

// aliveAfter waits until a run says that it lived after a time, and gives when;
// the zero time when it ended before.
func (w *killWorld) aliveAfter(after time.Time, out string, ended <-chan struct{}) time.Time {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ended:
			return time.Time{}
		case <-ticks.C:
		}
		raw, _ := os.ReadFile(filepath.Join(w.dir, out, "state", "alive"))
		if at, err := time.Parse(time.RFC3339, string(raw)); err == nil && at.After(after) {
			return at
		}
	}
}

// lifeOf gives when a run began, and how it went on.
func (w *killWorld) lifeOf(out string) (first time.Time, resumed transcript.RunResumed) {
	w.t.Helper()
	found := false
	for _, e := range readEvents(w.t, filepath.Join(w.dir, out, "transcript.jsonl")) {
		if first.IsZero() {
			first = e.Time
		}
		if e.Type == transcript.TypeRunResumed {
			found = true
			must.Do(w.t, json.Unmarshal(e.Data, &resumed))
		}
	}
	if !found {
		w.t.Fatal("the run did not go on")
	}
	return first, resumed
}
