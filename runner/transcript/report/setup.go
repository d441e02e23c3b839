package report

import (
	"fmt"
	"slices"

	g "maragu.dev/gomponents"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// setupFailed says whether setup commands left last lines, which those that fail do.
func (o *overview) setupFailed() bool {
	return slices.ContainsFunc(shownOf(o.View.Setup), func(s transcript.Setup) bool { return s.Tail != "" })
}

func (o *overview) setupSection() g.Node {
	steps := shownOf(o.View.Setup)
	if len(steps) == 0 {
		return nil
	}
	return section("setup", "Setup",
		table([]string{"Step", "Command", "Exit", "Time"}, g.Map(steps, func(s transcript.Setup) g.Node {
			return row(g.Text(field(s.Name)),
				cell("Command", code(field(s.Run))),
				cell("Exit", g.Text(fmt.Sprint(s.ExitCode))),
				cell("Time", g.Text(transcript.Duration(s.Seconds))),
			)
		})),
		g.Map(steps, func(s transcript.Setup) g.Node {
			if s.Tail == "" {
				return nil
			}
			return lastLines(nil, field(s.Name), fmt.Sprintf("exit %d", s.ExitCode), s.Tail)
		}),
	)
}
