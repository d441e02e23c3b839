package attached

import (
	"fmt"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// Ending describes how a program ended, as the end of a sentence.
func Ending(status sandbox.Status, err error) string {
	switch {
	case err != nil:
		return "ended: " + err.Error()
	case status.Signal != "":
		return "was ended by " + status.Signal
	}
	return fmt.Sprintf("ended with exit status %d", status.ExitCode)
}
