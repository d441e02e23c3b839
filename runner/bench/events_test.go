package bench

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// BenchmarkTurnEvents records the events of a run once more: what a turn spends for them.
func BenchmarkTurnEvents(b *testing.B) {
	const turns = 100
	dir := b.TempDir()
	program{dir: smallRepository(b), session: echoSession(turns), out: filepath.Join(dir, "run"), args: answerOnly}.run(b)
	file := must.Get(os.Open(filepath.Join(dir, "run", "transcript.jsonl")))(b)
	defer file.Close()
	redact := secrets.NewRedactor([]secrets.Value{{Name: "TOKEN", Secret: "hunter2hunter2"}}).Redact
	var plain, redacted, synced []time.Duration
	for b.Loop() {
		plain, redacted, synced = nil, nil, nil
		for range runs {
			took, _ := record(b, file, eventlog.Options{})
			plain = append(plain, took/turns)
			took, sync := record(b, file, eventlog.Options{Redact: redact})
			redacted, synced = append(redacted, took/turns), append(synced, sync)
		}
	}
	results.time("the events of a turn, encoded and written", medianOf(plain), 0)
	results.time("  redaction of them", medianOf(redacted)-medianOf(plain), 0)
	results.time("  fsync of their file, once", medianOf(synced), 0)
}

// record appends the events in file to a new log, and returns how long that takes and the median of an
// fsync after each answer.
func record(b *testing.B, file *os.File, o eventlog.Options) (appending, sync time.Duration) {
	b.Helper()
	must.Get(file.Seek(0, io.SeekStart))(b)
	log := must.Get(eventlog.Create(filepath.Join(b.TempDir(), "transcript.jsonl"), o))(b)
	defer log.Close()
	var syncs []time.Duration
	for event, err := range eventlog.Read(file) {
		must.Do(b, err)
		began := time.Now()
		_, err = log.Append(event.Type, event.Data)
		must.Do(b, err)
		appending += time.Since(began)
		if event.Type == "model.response" {
			began = time.Now()
			must.Do(b, log.Sync())
			syncs = append(syncs, time.Since(began))
		}
	}
	return appending, medianOf(syncs)
}
