package record

// Phase is a part of a run, named for people.
type Phase string

// The phases in order. A run may return to Agent.
const (
	PhaseSetup        Phase = "Setup"
	PhaseBaseline     Phase = "Baseline"
	PhaseAgent        Phase = "Agent"
	PhaseVerification Phase = "Verification"
	PhasePublishing   Phase = "Publishing"
)

// stepObserver shows the beginning of a step until over is called. An empty phase means the current
// one.
type stepObserver func(phase Phase, what string) (over func())

// BeginStep shows the user the current step until over is called. The transcript records results only.
func (r *Record) BeginStep(phase Phase, what string) (over func()) {
	if r.StepObserver == nil {
		return func() {}
	}
	return r.StepObserver(phase, r.Redact(what))
}
