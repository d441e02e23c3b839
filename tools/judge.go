package tools

// Judge decides whether a command may start. It is asked from several
// goroutines.
type Judge interface {
	// Judge returns nil, or why the command may not start.
	Judge(StartRequest) *Denial
}

// StartRequest is a command that a tool is about to start.
type StartRequest struct {
	Argv   []string // program and arguments; empty where there is a Script
	Script string   // that a shell of the tool's own choice is to run
	Dir    string   // where it starts, absolute
}

// Denial is why a command may not start.
type Denial struct {
	Rule  string // that says so
	Words string // for the model: what, why, and what to do instead
}

// Result is what the model gets for the call.
func (d *Denial) Result() Result {
	return Result{Output: d.Words, Failed: true, Detail: map[string]any{"denied": d.Rule}}
}
