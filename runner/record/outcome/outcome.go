// Package outcome owns the closed list of outcomes, their exit codes, and the error that carries
// one to the top of the run. It knows nothing of how runs work.
package outcome

import (
	"cmp"
	"fmt"
	"strings"
)

// Outcome is how a run ended. The list is closed and part of the public API.
type Outcome string

// The outcomes; docs/reference/outcomes.md says when each is used.
const (
	Changed            Outcome = "changed"
	NoChanges          Outcome = "no_changes"
	Skipped            Outcome = "skipped"
	InternalError      Outcome = "internal_error"
	InvalidInput       Outcome = "invalid_input"
	NeedsInput         Outcome = "needs_input"
	BudgetExceeded     Outcome = "budget_exceeded"
	VerifyFailed       Outcome = "verify_failed"
	PolicyViolation    Outcome = "policy_violation"
	ModelFailed        Outcome = "model_failed"
	ForgeFailed        Outcome = "forge_failed"
	SandboxUnavailable Outcome = "sandbox_unavailable"
	Conflict           Outcome = "conflict"
	ExtensionFailed    Outcome = "extension_failed"
	Cancelled          Outcome = "cancelled"
)

// outcomeInfo maps outcomes to exit codes and texts for people.
var outcomeInfo = map[Outcome]struct {
	code  int
	words string
}{
	Changed:            {0, "Changed"},
	NoChanges:          {0, "No change"},
	Skipped:            {0, "Skipped"},
	InternalError:      {1, "agent-ci failed"},
	InvalidInput:       {2, "Could not start"},
	NeedsInput:         {3, "Waiting for an answer"},
	BudgetExceeded:     {4, "Budget used up"},
	VerifyFailed:       {5, "Checks failed"},
	PolicyViolation:    {6, "Change refused"},
	ModelFailed:        {7, "The model failed"},
	ForgeFailed:        {8, "GitHub failed"},
	SandboxUnavailable: {9, "No sandbox here"},
	Conflict:           {10, "Conflict"},
	ExtensionFailed:    {11, "extension failed"},
	Cancelled:          {130, "Cancelled"},
}

// ExitCode returns the exit status. Cancelled has 130 (SIGINT, 128+2). A run that SIGTERM ended
// exits with 143 instead: see Stop.ExitCode.
func (o Outcome) ExitCode() int {
	if info, known := outcomeInfo[o]; known {
		return info.code
	}
	return outcomeInfo[InternalError].code
}

// Text returns the outcome in words.
func (o Outcome) Text() string {
	return cmp.Or(outcomeInfo[o].words, strings.ReplaceAll(string(o), "_", " "))
}

// ExitCodes returns the exit code of every outcome.
func ExitCodes() map[Outcome]int {
	all := make(map[Outcome]int, len(outcomeInfo))
	for o, end := range outcomeInfo {
		all[o] = end.code
	}
	return all
}

// Stop is an error that ends the run with an outcome. Message is one sentence
// for a person: what happened and what to do.
type Stop struct {
	Outcome Outcome
	Reason  string // snake_case, an open list
	Message string
	Err     error // the cause; may be nil
}

// Stopf returns a Stop with a formatted message. Long names in it are shortened later, after
// redaction. A shortened secret would not be recognised.
func Stopf(o Outcome, reason, format string, args ...any) *Stop {
	return &Stop{Outcome: o, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Because sets the cause of s and returns s.
func (s *Stop) Because(err error) *Stop {
	s.Err = err
	return s
}

// ExitCode returns the exit status. A run that SIGTERM ended has 143.
func (s *Stop) ExitCode() int {
	if s.Outcome == Cancelled && s.Reason == "sigterm" {
		return 143
	}
	return s.Outcome.ExitCode()
}

func (s *Stop) Error() string {
	return fmt.Sprintf("%s/%s: %s", s.Outcome, s.Reason, s.Message)
}

func (s *Stop) Unwrap() error { return s.Err }
