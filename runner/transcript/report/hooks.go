package report

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (a *assembler) hooks(n *entry, d transcript.Hooks) {
	n.Topic = field(transcript.Count(len(d.Hooks), "hook"))
	var lines []string
	for _, h := range d.Hooks {
		where := ""
		if h.Trusted {
			where = ", outside of the sandbox"
		}
		lines = append(lines, fmt.Sprintf("%s on %s: %s%s\nSHA-256 %s", h.Name, h.On, strings.Join(h.Run, " "), where, h.SHA256))
	}
	a.part(n, "In the order in which they are asked", strings.Join(lines, "\n"))
}

func (a *assembler) hook(n *entry, d transcript.Hook) {
	n.Topic, n.seconds, n.Bad = field(d.Name), d.Seconds, d.Decision == transcript.HookDeny || d.Decision == transcript.HookFailed
	n.End = d.Decision + " · " + transcript.Duration(d.Seconds)
	about := d.On
	if d.Number > 0 {
		about += ", call " + d.Ref().String()
	}
	a.part(n, "On", about)
	a.part(n, "Reason", d.Reason)
	a.part(n, "Context", d.Context)
	a.part(n, "Message", d.Message)
	a.part(n, "Before", d.Before)
	a.part(n, "After", d.After)
	if d.WentOn {
		a.part(n, "And then", "The run went on all the same, by on_error: continue.")
	}
}
