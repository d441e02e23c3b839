package hooks

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Answers holds a record's hook answers and the progress of the hooks.
type Answers struct {
	// Replace means the record replaces all hooks, and missing answers pass. Otherwise the run
	// resumes and repeats no once-per-run question.
	Replace bool
	Uses    []transcript.HookUse // by then
	Rounds  int                  // that stop hooks asked for
	// More is the latest request of the stop hooks, if not yet sent to the model.
	More string
	// Stopped means stop hooks ran after the model's last answer.
	Stopped bool

	answers *recorded
}

// recorded holds unused answers.
type recorded struct {
	mu   sync.Mutex
	left []transcript.Hook
}

// onceOnly lists events that occur once per run.
var onceOnly = []string{job.OnSessionStart, job.OnUserPrompt, job.OnToolDefinition, job.OnShellEnv}

// Take adds the next event of a record.
func (p *Answers) Take(e transcript.Event) error {
	if e.By() != "" && e.Type != transcript.TypeHook {
		return nil
	}
	switch e.Type {
	case transcript.TypeModelRequest:
		p.More, p.Stopped = "", false
		return nil
	case transcript.TypeModelResponse:
		p.Stopped = false
		return nil
	case transcript.TypeHook:
	default:
		return nil
	}
	var d transcript.Hook
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	if d.On == job.OnStop {
		p.Stopped = true
		if d.Decision == transcript.HookMore {
			if p.Rounds++; p.Rounds <= mostRounds { // what was asked for beyond that is not given
				p.More = d.Reason
			}
		}
	}
	if p.answers == nil {
		p.answers = new(recorded)
	}
	p.answers.left = append(p.answers.left, d)
	return nil
}

// take returns the recorded answer to a question, once.
func (p *Answers) take(name, on string, call transcript.CallRef) (transcript.Hook, bool) {
	if !p.Replace && !slices.Contains(onceOnly, on) {
		return transcript.Hook{}, false
	}
	if p.answers != nil {
		p.answers.mu.Lock()
		defer p.answers.mu.Unlock()
		for i, d := range p.answers.left {
			if d.Name == name && d.On == on && d.Ref() == call {
				p.answers.left = slices.Delete(p.answers.left, i, i+1)
				return d, true
			}
		}
	}
	return transcript.Hook{Decision: transcript.HookPass}, p.Replace
}

// repeat returns a recorded reply.
func (h Hook) repeat(d transcript.Hook) reply {
	r := reply{after: d.After, wentOn: d.WentOn, took: time.Duration(d.Seconds * float64(time.Second))}
	r.reason, r.context, r.message, r.stop = d.Reason, d.Context, d.Message, d.Stop
	switch d.Decision {
	case transcript.HookFailed:
		r.failed = d.Reason
	case transcript.HookDeny:
		r.decision = denies
		r.feedback = h.On == job.OnPostToolUse && !d.Stop
	case transcript.HookMore:
		r.decision = wants
	case transcript.HookReplace:
		r.output = &r.after
	case transcript.HookRewrite:
		if h.On == job.OnPreToolUse {
			r.input = json.RawMessage(r.after)
		} else {
			_ = json.Unmarshal([]byte(r.after), &r.texts) // else nothing is set
		}
	}
	return r
}
