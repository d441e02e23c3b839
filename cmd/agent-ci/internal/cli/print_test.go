package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestNamesSignalThatStopped(t *testing.T) {
	var stderr bytes.Buffer
	must.Same(t, ExitFailed, Process{Stderr: &stderr}.Report("doctor", fmt.Errorf("ask: %w", context.Canceled)))
	must.Same(t, "agent-ci doctor: it was stopped by a signal\n", stderr.String())
}
