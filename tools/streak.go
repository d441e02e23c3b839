package tools

// What an agent does about the same failing call in a row: it points it out at
// StuckWarning and ends the run at StuckEnd.
const (
	StuckWarning = 3
	StuckEnd     = 5
)

// Streak counts how often in a row one call failed. The zero value is ready.
// Calls are added in the order in which the model made them.
type Streak struct {
	name, input string
	length      int
}

// Add notes a call and returns how many identical ones have failed in a row
// with it: 0 when it did not fail, 1 when it differs from the one before.
func (s *Streak) Add(call Call, failed bool) int {
	if !failed {
		*s = Streak{}
		return 0
	}
	if call.Name != s.name || call.Input != s.input {
		*s = Streak{name: call.Name, input: call.Input}
	}
	s.length++
	return s.length
}
