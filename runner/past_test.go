package runner

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func TestANudgeIsKnownAfterARestart(t *testing.T) {
	request := func(item string) transcript.Event {
		return transcript.Event{Type: transcript.TypeModelRequest, Data: json.RawMessage(`{"turn":1,"settings":{},"input":[` + item + `]}`)}
	}
	compacted := transcript.Event{Type: transcript.TypeCompaction, Data: json.RawMessage(`{"items":[]}`)}
	nudge := `{"type":"message","role":"developer","content":[{"type":"input_text","text":"You ended, but nothing has changed."}]}`
	quoted := `{"type":"function_call_output","call_id":"c","output":"\"text\":\"You ended, but nothing"}`
	for name, c := range map[string]struct {
		events []transcript.Event
		want   bool
	}{
		"nudged":                           {[]transcript.Event{request(nudge)}, true},
		"nudged, and the words are gone":   {[]transcript.Event{request(nudge), compacted}, true},
		"the words stand in a tool's text": {[]transcript.Event{request(quoted)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &past{}
			for _, e := range c.events {
				if err := p.take(e); err != nil {
					t.Fatal(err)
				}
			}
			if p.nudged != c.want {
				t.Errorf("nudged is %t", p.nudged)
			}
		})
	}
}

func TestTimeWithoutEventsCounts(t *testing.T) {
	dir, err := newDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.close()
	if _, err := dir.makeFolder(stateFolder); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	now := began
	log, err := transcript.Create(dir.join(transcriptFile), transcript.Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r := &run{dir: dir}
	for _, step := range []struct {
		name  string
		at    time.Duration // since the run began
		event transcript.Type
		data  any
		alive time.Duration
		want  time.Duration
	}{
		{"an event", 0, transcript.TypeWarning, transcript.Warning{}, 0, 0},
		{"killed in a long command", 10 * time.Second, transcript.TypeWarning, transcript.Warning{}, 90 * time.Second, 90 * time.Second},
		{"went on an hour later", time.Hour, transcript.TypeRunResumed, transcript.RunResumed{Seconds: 90}, 90 * time.Second, 90 * time.Second},
		{"killed at an event", time.Hour + 5*time.Second, transcript.TypeWarning, transcript.Warning{}, 90 * time.Second, 95 * time.Second},
		{"killed in a long command again", time.Hour + 6*time.Second, transcript.TypeWarning, transcript.Warning{}, time.Hour + time.Minute, 150 * time.Second},
		{"a clock that was put back", time.Hour + 7*time.Second, transcript.TypeWarning, transcript.Warning{}, 100 * 365 * 24 * time.Hour, 97 * time.Second},
	} {
		now = began.Add(step.at)
		if _, err := log.Append(step.event, step.data); err != nil {
			t.Fatal(err)
		}
		if step.alive > 0 {
			if err := dir.write(aliveFile, []byte(began.Add(step.alive).Format(aliveLayout))); err != nil {
				t.Fatal(err)
			}
		}
		p, err := r.readPast()
		if err != nil {
			t.Fatal(err)
		}
		if p.elapsed != step.want {
			t.Errorf("%s: the run lived %s, want %s", step.name, p.elapsed, step.want)
		}
	}
}
