package record

// Phase is a part of a run. Its value is a name for people.
type Phase string

// The phases in order. A run may return to PhaseAgent.
const (
	PhaseSetup        Phase = "Setup"
	PhaseBaseline     Phase = "Baseline"
	PhaseAgent        Phase = "Agent"
	PhaseVerification Phase = "Verification"
	PhasePublishing   Phase = "Publishing"
)

// StepObserver shows steps to the user.
type StepObserver interface {
	// BeginActivity shows a step until endStep is called. An empty phase means the current one.
	BeginActivity(phase Phase, description string) (endStep func())
}

// BeginStep shows a step to the user until endStep is called. It writes no event: the transcript has
// the results of steps, not the steps.
func (r *Record) BeginStep(phase Phase, description string) (endStep func()) {
	if r.StepObserver == nil {
		return func() {}
	}
	return r.StepObserver.BeginActivity(phase, r.Redact(description))
}
