package intake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
)

func TestForgeFailure(t *testing.T) {
	for want, err := range map[string]error{
		"":                                nil,
		"forge_failed/failed: It: odd.":   errors.New("odd."),
		"forge_failed/forbidden: It: no.": fmt.Errorf("while doing: %w", &forge.Error{Kind: forge.Forbidden, Message: "no", Doing: "asking"}),
		"forge_failed/not_found: It: gone; look again.": &forge.Error{Kind: forge.NotFound, Message: "gone.", Remedy: "look again."},
		// The deadline of one connection is not that of the run.
		"forge_failed/unavailable: It: no connection.": &forge.Error{Kind: forge.Unavailable, Message: "no connection", Err: context.DeadlineExceeded},
		"context canceled":          context.Canceled,
		"context deadline exceeded": context.DeadlineExceeded,
	} {
		got := intake.ForgeFailure("It", err)
		if text := fmt.Sprint(got); got != nil && text != want || got == nil && want != "" {
			t.Errorf("%v: %v", err, got)
		}
		if err != nil && !errors.Is(got, err) {
			t.Errorf("%v is not behind %v", err, got)
		}
	}
}
