// Package outcometest checks in tests how an error ends a run.
package outcometest

import (
	"errors"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// End returns OUTCOME/REASON of an error that ends a run, the text of another error, and "" for none.
func End(err error) string {
	if stop, is := errors.AsType[*outcome.Stop](err); is {
		return string(stop.Outcome) + "/" + stop.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Reason is End without the outcome.
func Reason(err error) string {
	if stop, is := errors.AsType[*outcome.Stop](err); is {
		return stop.Reason
	}
	return End(err)
}

// Want ends the test unless the error ends a run as OUTCOME/REASON or REASON; "" means no error. The message must
// contain words. Want returns the outcome, or nil without an error.
func Want(t must.Test, err error, end string, words ...string) *outcome.Stop {
	t.Helper()
	stop, _ := errors.AsType[*outcome.Stop](err)
	if End(err) != end && Reason(err) != end || (stop == nil) != (err == nil) {
		t.Fatal("the error is", err, "want", end)
	}
	if stop != nil {
		must.Contain(t, stop.Message, words...)
	}
	return stop
}
