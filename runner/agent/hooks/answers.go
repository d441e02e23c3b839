package hooks

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Answers are those of hooks that a record has, and how far the hooks were.
type Answers struct {
	// Replays says that the record stands in for all hooks: what it does not have passes. Else
	// the run goes on, and what is asked once in a run is not asked again.
	Replays bool
	Uses    []transcript.HookUse // by then
	Rounds  int                  // that stop hooks asked for
	// More is what they asked for last, where no request told it to the model.
	More string
	// Stopped says that they were asked after the last answer of the model.
	Stopped bool

	answers *recorded
}

// recorded are answers that are still to be taken.
type recorded struct {
	mu   sync.Mutex
	left []transcript.Hook
}

// onceOnly are the events of which there is one in a run.
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
			if p.Rounds++; p.Rounds <= MostRounds { // what was asked for beyond that is not given
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

// take is the answer that the record has for a question, which is had once.
func (p *Answers) take(name, on string, call transcript.CallRef) (transcript.Hook, bool) {
	if !p.Replays && !slices.Contains(onceOnly, on) {
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
	return transcript.Hook{Decision: transcript.HookPass}, p.Replays
}

// repeat is the reply that a record tells of.
func (one Hook) repeat(d transcript.Hook) reply {
	r := reply{after: d.After, wentOn: d.WentOn, took: time.Duration(d.Seconds * float64(time.Second))}
	r.reason, r.context, r.message, r.stop = d.Reason, d.Context, d.Message, d.Stop
	switch d.Decision {
	case transcript.HookFailed:
		r.failed = d.Reason
	case transcript.HookDeny:
		r.decision = denies
		r.feedback = one.On == job.OnPostToolUse && !d.Stop
	case transcript.HookMore:
		r.decision = wants
	case transcript.HookReplace:
		r.output = &r.after
	case transcript.HookRewrite:
		if one.On == job.OnPreToolUse {
			r.input = json.RawMessage(r.after)
		} else {
			_ = json.Unmarshal([]byte(r.after), &r.texts) // else nothing is set
		}
	}
	return r
}
