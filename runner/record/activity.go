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

// Onlooker shows the beginning of a step until over is called. An empty phase means the current
// one.
type Onlooker func(phase Phase, what string) (over func())

// Begins shows the user the current step until over is called. The transcript records results only.
func (r *Record) Begins(phase Phase, what string) (over func()) {
	if r.Onlooker == nil {
		return func() {}
	}
	return r.Onlooker(phase, r.Redact(what))
}
