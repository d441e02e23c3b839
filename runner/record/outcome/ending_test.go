package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

func TestMapsErrorToOutcome(t *testing.T) {
	stop := outcome.Stopf(outcome.ModelFailed, "quota", "No money.")
	byUser := outcome.Stopf(outcome.Cancelled, "sigterm", "Cancelled.")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(byUser)
	late, stopLate := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), outcome.Stopf(outcome.BudgetExceeded, "time", "Late."))
	defer stopLate()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"a stop":                                {t.Context(), fmt.Errorf("work: %w", stop), "model_failed/quota"},
		"a signal":                              {cancelled, fmt.Errorf("work: %w", context.Canceled), "cancelled/sigterm"},
		"the time limit":                        {late, context.DeadlineExceeded, "budget_exceeded/time"},
		"an error that a signal caused":         {cancelled, errors.New("write |1: broken pipe"), "cancelled/sigterm"},
		"a stop of its own, although cancelled": {cancelled, stop, "model_failed/quota"},
		"a failure of its own, although late":   {late, fmt.Errorf("write transcript: %w", syscall.ENOSPC), "internal_error/disk_full"},
		"an internal end, although late":        {late, outcome.Stopf(outcome.InternalError, "panic", "Broken."), "internal_error/panic"},
		"work that the time limit broke off":    {late, fmt.Errorf("git diff: %w", context.Cause(late)), "budget_exceeded/time"},
		"a connection that the time limit cut":  {late, fmt.Errorf("read: %w", os.ErrDeadlineExceeded), "budget_exceeded/time"},
		"no descriptor left":                    {t.Context(), fmt.Errorf("look: %w", syscall.EMFILE), "internal_error/open_files"},
		"no descriptor left, taken for input":   {t.Context(), outcome.Stopf(outcome.InvalidInput, "file", "No.").Because(syscall.ENFILE), "internal_error/open_files"},
		"no descriptor left, although late":     {late, fmt.Errorf("look: %w", syscall.EMFILE), "internal_error/open_files"},
		"no descriptor left, and cancelled":     {cancelled, fmt.Errorf("look: %w", syscall.EMFILE), "cancelled/sigterm"},
		"no memory left":                        {t.Context(), fmt.Errorf("fork: %w", syscall.ENOMEM), "internal_error/memory"},
		"anything else":                         {t.Context(), errors.New("disk full"), "internal_error/unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome.ForError(c.ctx, c.err)
			must.Same(t, c.want, fmt.Sprintf("%s/%s", got.Outcome, got.Reason), "ended as")
		})
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		stop *outcome.Stop
		want int
	}{
		{outcome.Stopf(outcome.Cancelled, "sigint", ""), 130},
		{outcome.Stopf(outcome.Cancelled, "sigterm", ""), 143},
		{outcome.Stopf(outcome.Changed, "pushed", ""), 0},
		{outcome.Stopf(outcome.Conflict, "foreign_commit", ""), 10},
	} {
		must.Same(t, c.want, c.stop.ExitCode(), c.stop.Outcome, c.stop.Reason)
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"it failed.": "It failed", "": "", " écrit. ": "Écrit", "octo/widgets: it failed": "octo/widgets: it failed", "go.mod is missing": "go.mod is missing", "git: it failed": "Git: it failed", "it. failed": "It. failed"} {
		must.Same(t, want, outcome.Sentence(text), text)
	}
}
