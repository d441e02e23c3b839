package tools

import "context"

// Gate is asked about calls before and after they run, from several goroutines. A call that
// is refused anyway is not shown to it.
type Gate interface {
	// Before judges a call that is about to run; tool is what answers it. Input of the
	// verdict is what the call is to be made with, which is then checked as the model's was.
	Before(ctx context.Context, tool string, call Call) Verdict
	// After gives what the model is to get of the result of a call.
	After(ctx context.Context, tool string, call Call, result Result) Result
}

// Verdict is what becomes of a call; the zero value lets it run as it is.
type Verdict struct {
	Refusal string  // why it is not run, in words for the model
	Input   *string // that replaces the call's
	Aside   string  // words for the model that stand before the output
}
