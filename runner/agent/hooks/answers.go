package hooks

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Answers holds a record's hook answers and the progress of the hooks.
type Answers struct {
	// Replace means the record replaces all hooks, and missing answers pass. Otherwise the run
	// resumes and repeats no once-per-run question.
	Replace    bool
	Uses       []transcript.HookUse // of the recorded part of the run
	StopRounds int                  // rounds of more work that stop hooks asked for
	// PendingRequest is the latest request of the stop hooks, if not yet sent to the model.
	PendingRequest string
	// stopHooksRan means stop hooks ran after the model's last answer.
	stopHooksRan bool

	unused []transcript.Hook
}

// oncePerRun lists events that occur once per run.
var oncePerRun = []string{job.OnSessionStart, job.OnUserPrompt, job.OnToolDefinition, job.OnShellEnv}

// Apply adds the next event of a record.
func (p *Answers) Apply(e transcript.Event) error {
	if e.By() != "" && e.Type != transcript.TypeHook {
		return nil
	}
	switch e.Type {
	case transcript.TypeModelRequest:
		p.PendingRequest, p.stopHooksRan = "", false
		return nil
	case transcript.TypeModelResponse:
		p.stopHooksRan = false
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
		p.stopHooksRan = true
		if d.Decision == transcript.HookMore {
			if p.StopRounds++; p.StopRounds <= maxStopRounds { // what was asked for beyond that is not given
				p.PendingRequest = d.Reason
			}
		}
	}
	p.unused = append(p.unused, d)
	return nil
}

// takeAnswer returns the recorded answer to a question, once.
func (p *Answers) takeAnswer(name, on string, call transcript.CallRef) (transcript.Hook, bool) {
	if !p.Replace && !slices.Contains(oncePerRun, on) {
		return transcript.Hook{}, false
	}
	i := slices.IndexFunc(p.unused, func(d transcript.Hook) bool { return d.Name == name && d.On == on && d.Ref() == call })
	if i < 0 {
		return transcript.Hook{Decision: transcript.HookPass}, p.Replace
	}
	d := p.unused[i]
	p.unused = slices.Concat(p.unused[:i], p.unused[i+1:]) // a copy of p keeps its own
	return d, true
}

// repeat returns a recorded reply.
func (h Hook) repeat(d transcript.Hook) reply {
	r := reply{replacement: d.After, continued: d.WentOn, duration: time.Duration(d.Seconds * float64(time.Second))}
	r.reason, r.context, r.message, r.stop = d.Reason, d.Context, d.Message, d.Stop
	switch d.Decision {
	case transcript.HookFailed:
		r.failure = d.Reason
	case transcript.HookDeny:
		r.decision = decisionDeny
		r.feedback = h.On == job.OnPostToolUse && !d.Stop
	case transcript.HookMore:
		r.decision = decisionMore
	case transcript.HookReplace:
		r.output = &r.replacement
	case transcript.HookRewrite:
		if h.On == job.OnPreToolUse {
			r.input = json.RawMessage(r.replacement)
		} else {
			_ = json.Unmarshal([]byte(r.replacement), &r.texts) // else nothing is set
		}
	}
	return r
}
