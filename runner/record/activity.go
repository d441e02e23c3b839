package record

// Phase is a part of a run, under the name that people read.
type Phase string

// The phases, in the order in which a run goes through them; it may come back to Agent.
const (
	PhaseSetup        Phase = "Setup"
	PhaseBaseline     Phase = "Baseline"
	PhaseAgent        Phase = "Agent"
	PhaseVerification Phase = "Verification"
	PhasePublishing   Phase = "Publishing"
)

// Onlooker shows that something begins, until over is called. An empty phase is the phase that
// the run is in.
type Onlooker func(phase Phase, what string) (over func())

// Begins shows people what the run does from now on, until over is called. The transcript does
// not get it: events tell what has happened.
func (r *Record) Begins(phase Phase, what string) (over func()) {
	if r.Onlooker == nil {
		return func() {}
	}
	return r.Onlooker(phase, r.Redact(what))
}
