package hooks

import (
	"encoding/json"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Answers holds the hook answers in a run's record, and how far its stop hooks got.
type Answers struct {
	// ReplaceQuestions is true in a replay: no hook runs, and a question without a recorded answer counts as allowed.
	// It is false for a resumed run: then the record answers only questions that occur once per run.
	ReplaceQuestions bool
	StopRounds       int // how often stop hooks demanded more work
	// PendingRequest is the latest demand of the stop hooks that the model did not get yet, or "".
	PendingRequest string
	// stopHooksRan means stop hooks ran after the model's last answer.
	stopHooksRan bool

	unusedAnswers []transcript.HookAnswer // recorded answers that no question has used yet
	missing       []Question              // questions of a replay without a recorded answer
}

// Question names a hook and the event that it was asked about.
type Question struct{ Hook, Event string }

// AtStart reports whether the question comes before the agent's first turn.
func (q Question) AtStart() bool { return slices.Contains(oncePerRun, q.Event) }

// Missing returns the questions of a replay that have no recorded answer.
func (h *Hooks) Missing() []Question {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Answers.missing)
}

// oncePerRun lists events that occur once per run.
var oncePerRun = []string{job.OnSessionStart, job.OnUserPrompt, job.OnToolDefinition, job.OnShellEnv}

// Apply applies the next event of a record. It keeps the answers of hooks. A request to the model or its answer shows
// that the stop hooks before it are settled, unless another agent made it.
func (a *Answers) Apply(e transcript.Event) {
	ofMain := e.Subagent() == ""
	switch d := e.Content.(type) {
	case transcript.ModelRequest:
		if ofMain {
			a.PendingRequest, a.stopHooksRan = "", false
		}
	case transcript.ModelResponse:
		if ofMain {
			a.stopHooksRan = false
		}
	case transcript.HookAnswer:
		if d.Event == job.OnStop {
			a.stopHooksRan = true
			if d.Decision == transcript.HookMore {
				a.StopRounds++
				if a.StopRounds <= maxStopRounds { // later demands were refused
					a.PendingRequest = d.Reason
				}
			}
		}
		a.unusedAnswers = append(a.unusedAnswers, d)
	}
}

// takeAnswer returns the recorded answer of the hook called name to a question about an event and call, and marks it
// as used. isRecorded is false if the hook must be asked. With ReplaceQuestions, no hook is asked: a missing answer
// counts as a pass.
func (a *Answers) takeAnswer(name, event string, call transcript.CallRef) (recorded transcript.HookAnswer, isRecorded bool) {
	if !a.ReplaceQuestions && !slices.Contains(oncePerRun, event) { // a resumed run asks about new calls
		return transcript.HookAnswer{}, false
	}
	i := slices.IndexFunc(a.unusedAnswers, func(d transcript.HookAnswer) bool { return d.Name == name && d.Event == event && d.Ref() == call })
	if i >= 0 {
		recorded = a.unusedAnswers[i]
		a.unusedAnswers = slices.Concat(a.unusedAnswers[:i], a.unusedAnswers[i+1:]) // a new slice, since copies of a share the old one
		return recorded, true
	}
	if a.ReplaceQuestions {
		a.missing = append(a.missing, Question{name, event})
	}
	return transcript.HookAnswer{Decision: transcript.HookPass}, a.ReplaceQuestions
}

// recordedReply returns the hook's reply in the recorded answer d.
func (h Hook) recordedReply(d transcript.HookAnswer) reply {
	r := reply{HookAnswer: d}
	switch {
	case d.Decision == transcript.HookReplace:
		r.output = &r.After
	case d.Decision == transcript.HookRewrite && h.Event != job.OnPreToolUse:
		_ = json.Unmarshal([]byte(d.After), &r.namedTexts) // if it is invalid, nothing is set
	}
	return r
}
