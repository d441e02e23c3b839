package progress

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// hookWords tell of what a hook decided, where that is more than to let be.
func hookWords(d transcript.Hook) string {
	told := func(what string) string {
		line := fmt.Sprintf("  hook %s on %s %s", d.Name, d.On, what)
		if d.Reason != "" {
			line += ": " + d.Reason
		}
		return line
	}
	switch d.Decision {
	case transcript.HookDeny:
		return told("refuses")
	case transcript.HookFailed:
		return told("failed")
	case transcript.HookMore:
		return told("wants more work")
	case transcript.HookRewrite, transcript.HookReplace:
		return told(map[string]string{transcript.HookRewrite: "rewrites", transcript.HookReplace: "replaces the output"}[d.Decision])
	}
	return ""
}
