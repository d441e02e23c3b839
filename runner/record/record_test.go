package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

const secret = "hunter22-of-the-octocat"

// begun is a record with a transcript, and the types of its events so far.
func begun(t *testing.T, hidden ...secrets.Value) (rec *Record, events func() []transcript.Type) {
	t.Helper()
	rec = New("r1", hidden)
	var all []transcript.Type
	must.Do(t, rec.Make(filepath.Join(t.TempDir(), "run"), func(_ *transcript.View, e transcript.Event) { all = append(all, e.Type) }))
	t.Cleanup(rec.Close)
	return rec, func() []transcript.Type { return all }
}

func TestWarnsOnceAfterRunStarts(t *testing.T) {
	rec, events := begun(t, secrets.Value{Name: "TOKEN", Secret: secret})
	rec.Warn("early", "It is %s.", secret)
	rec.Warn("early", "It is %s.", secret)
	if got := events(); len(got) > 0 || rec.Started() {
		t.Errorf("before run.started there are %v", got)
	}
	for range 2 {
		must.Do(t, rec.Begin(transcript.RunStarted{RunID: "r1"}))
	}
	rec.Warn("early", "It is %s.", secret)
	rec.Warn("early", "It is another.")
	rec.Warn("late", "It is another.")
	want := []transcript.Warning{{Code: "early", Message: "It is [secret TOKEN]."}, {Code: "early", Message: "It is another."}, {Code: "late", Message: "It is another."}}
	must.Same(t, want, rec.Warnings())
	types := []transcript.Type{transcript.TypeRunStarted, transcript.TypeWarning, transcript.TypeWarning, transcript.TypeWarning}
	must.Same(t, types, events())
}

func TestResumeRepeatsNoWarnings(t *testing.T) {
	rec, events := begun(t)
	old := transcript.Warning{Code: "old", Message: "It was so."}
	rec.ContinueWarnings([]transcript.Warning{old})
	rec.Warn("old", "It was so.")
	rec.Warn("new", "It is so.")
	must.Do(t, rec.Begin(transcript.RunStarted{}))
	must.Same(t, []transcript.Type{transcript.TypeWarning}, events())
	must.Same(t, 2, len(rec.Warnings()), rec.Warnings())
}

func TestParallelCallsWarnOnce(t *testing.T) {
	rec, events := begun(t)
	must.Do(t, rec.Begin(transcript.RunStarted{}))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { rec.Warn("same", "It is %d.", i%2) })
	}
	all.Wait()
	if got := len(events()); got != 3 || len(rec.Warnings()) != 2 {
		t.Errorf("%d events, %v", got, rec.Warnings())
	}
}

func TestFoldsEventsWithoutTranscript(t *testing.T) {
	rec := New("r1", []secrets.Value{{Name: "TOKEN", Secret: secret}})
	rec.Warn("code", "A warning.")
	plan := transcript.Plan{Steps: []transcript.PlanStep{{Step: "Take " + secret + ".", Status: "completed"}}}
	change := transcript.Change{Files: []changeset.File{{Path: secret + ".txt"}}} // a name may hold a secret
	must.Do(t, errors.Join(rec.Begin(transcript.RunStarted{}), rec.Append(plan), rec.Append(change), rec.SyncLog()))
	view := must.Get(rec.Conclude(transcript.RunFinished{Outcome: "changed"}, nil))(t)
	rec.Warn("late", "Nobody sees it.")
	result := ResultFromView(view)
	if len(result.Warnings) != 1 || rec.Log() != nil || result.RunID != "r1" || result.Plan[0].Step != "Take [secret TOKEN]." || result.Outcome != "changed" {
		t.Errorf("%+v", result)
	}
	if len(result.ChangedFiles) != 1 || result.ChangedFiles[0].Path != "[secret TOKEN].txt" {
		t.Errorf("%+v", result.ChangedFiles)
	}
	rec.StopHeartbeat()
	rec.Close()
}

func TestRedactsSecretsInEvents(t *testing.T) {
	rec, _ := begun(t)
	rec.SetSecrets([]secrets.Value{{Name: "TOKEN", Secret: secret}}) // which was not known at the beginning
	must.Do(t, errors.Join(rec.Append(transcript.Plan{Explanation: "Take " + secret + "."}), rec.SyncLog()))
	if log := content(t, rec.Join(TranscriptFile)); strings.Contains(log, secret) || !strings.Contains(log, "[secret TOKEN]") {
		t.Errorf("on disk is %s", log)
	}
	if err := rec.Append(transcript.Setup{Seconds: math.NaN()}); err == nil || !strings.HasPrefix(err.Error(), "write transcript: ") {
		t.Errorf("what is no JSON is appended: %v", err)
	}
}

func TestRefusesAlteredTranscript(t *testing.T) {
	for name, alter := range map[string]func(log string) error{
		"changed": func(log string) error { return os.WriteFile(log, []byte("{}\n"), 0o600) },
		"longer": func(log string) error {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("{}\n")
			return errors.Join(err, f.Close())
		},
		"cut to its beginning": func(log string) error { return os.Truncate(log, 0) },
		"gone":                 os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			rec, _ := begun(t)
			must.Do(t, rec.Append(transcript.Task{Text: "Greet."}))
			view, err := rec.View()
			if err != nil || view.Task.Text != "Greet." {
				t.Fatalf("%+v, %v", view, err)
			}
			must.Do(t, alter(rec.Join(TranscriptFile)))
			_, err = rec.View()
			outcometest.Want(t, err, "transcript_altered", "nothing was published")
		})
	}
}

func TestReadsLastHeartbeat(t *testing.T) {
	d := directory(t)
	at := time.Date(2026, 3, 1, 9, 0, 0, int(250*time.Millisecond), time.UTC)
	for text, want := range map[string]time.Time{
		at.Format(heartbeatLayout): at, "": {}, "2026-03-01T09": {}, at.Format(heartbeatLayout) + "Z": {}, "not a time": {},
	} {
		must.Write(t, d.Join(heartbeatFile), text)
		if got := d.LastHeartbeat(); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	d.Remove(heartbeatFile)
	if got := d.LastHeartbeat(); !got.IsZero() {
		t.Errorf("without a file: %v", got)
	}
}

func TestRedactionSparesBaseText(t *testing.T) {
	const text = "it says of-the-octocat there"
	lookup := func(holds bool, err error) func(context.Context, string) (bool, error) {
		return func(ctx context.Context, fragment string) (bool, error) {
			if !strings.Contains(text, fragment) || ctx.Err() != nil {
				t.Errorf("looked up %q, %v", fragment, ctx.Err())
			}
			return holds, err
		}
	}
	for name, c := range map[string]struct {
		holds  func(context.Context, string) (bool, error)
		spared bool
	}{
		"it stands there":         {lookup(true, nil), true},
		"it does not":             {lookup(false, nil), false},
		"it can't be looked up":   {lookup(true, errors.New("damaged")), false},
		"nobody says what stands": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			rec := New("r1", []secrets.Value{{Name: "TOKEN", Secret: secret}})
			if c.holds != nil {
				stopped, stop := context.WithCancel(t.Context())
				stop() // what ends a stage does not end the looking
				rec.ExemptBase(stopped, c.holds)
			}
			must.Same(t, c.spared, rec.Redact(text) == text, "it is")
			must.Lack(t, rec.Redact("all of "+secret), secret)
		})
	}
}

func TestBoundsAndCachesBaseLookups(t *testing.T) {
	var looked []string
	stands := memoizeLookups(func(fragment string) bool {
		looked = append(looked, fragment)
		return strings.HasPrefix(fragment, "in base")
	})
	for range 2 {
		for i := range maxExemptLookups - 1 {
			if got := stands(fmt.Sprintf("in base %d", i)); !got {
				t.Errorf("fragment %d is removed", i)
			}
		}
	}
	if stands("elsewhere") || stands("in base, but too late") {
		t.Error("a fragment is spared that was not found")
	}
	must.Same(t, true, stands("in base 1"), "what was found is forgotten")
	if len(looked) != maxExemptLookups || looked[len(looked)-1] != "elsewhere" {
		t.Errorf("%d are looked up, the last is %s", len(looked), looked[len(looked)-1])
	}
}

func TestResultWritesEmptyLists(t *testing.T) {
	raw := must.Get(json.Marshal(NewResult("r1", outcome.Stopf(outcome.InvalidInput, "job", "It is wrong."))))(t)
	var result map[string]any
	must.Do(t, json.Unmarshal(raw, &result))
	for _, list := range []string{"plan", "verify", "warnings"} {
		if _, is := result[list].([]any); !is {
			t.Errorf("%s is %v", list, result[list])
		}
	}
	want := map[string]any{"level": "none", "layers": []any{}, "work_tree": "checkout"}
	must.Same[any](t, want, result["sandbox"])
	must.Same(t, 2.0, result["exit_code"])
	must.Same(t, 2.0, result["version"])
}

// What a run comes to know is kept out beside what it knew, whatever that becomes.
func TestRedactsAddedSecrets(t *testing.T) {
	r := New("run", []secrets.Value{{Name: "TOKEN", Secret: "token-0123456789"}})
	r.AddSecret("the key", "minted-0123456789")
	r.AddSecret("the key", "minted-0123456789")
	const text = "token-0123456789 minted-0123456789 other-0123456789"
	must.Same(t, "[secret TOKEN] [secret the key] other-0123456789", r.Redact(text))
	r.SetSecrets([]secrets.Value{{Name: "OTHER", Secret: "other-0123456789"}})
	must.Same(t, "token-0123456789 [secret the key] [secret OTHER]", r.Redact(text))
}
