package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/setup/doctor"
)

// inspectServers starts the MCP servers of a job, prints what they offer, and stops them. status is
// not 0 if a run would end because of them.
func inspectServers(ctx context.Context, p process, file string, show bool) (found []doctor.Server, status int) {
	o := sandboxcommand.Options{JobFile: file, Environ: p.environ, Reserved: reserved()}
	if isDefaults(file) {
		o.JobFile = ""
		fmt.Fprintf(p.stderr, "agent-ci validate: the servers of %s are those of the commit that is checked out, as in a run; what is not committed counts for none.\n", progress.Printable(file))
	}
	found, err := doctor.LookAtServers(ctx, o)
	if err != nil {
		stop := outcome.Of(ctx, err)
		fmt.Fprintf(p.stderr, "agent-ci validate: %s\n", outcome.ShortenNames(progress.Printable(stop.Message)))
		return found, stop.ExitCode()
	}
	for _, server := range found {
		if show {
			showServer(p.stdout, server)
		}
		if !server.Ready && server.Unknown == "" && server.Required {
			status = outcome.ExtensionFailed.ExitCode()
		}
	}
	return found, status
}

func showServer(to io.Writer, s doctor.Server) {
	line := func(text string) { fmt.Fprintln(to, progress.Printable(text)) }
	if s.Unknown != "" {
		line(fmt.Sprintf("%s: not looked at: %s", s.Name, s.Unknown))
		return
	}
	if !s.Ready {
		line(fmt.Sprintf("%s: does not start (%s): %s", s.Name, s.Reason, s.Why))
		return
	}
	words := fmt.Sprintf("%s: %s %s, protocol %s", s.Name, s.Server, s.Version, s.Revision)
	if s.Deferred {
		words += "; the model looks for its tools"
	}
	line(words)
	for _, tool := range s.Tools {
		words := fmt.Sprintf("  %s  %s", tool.SHA256, tool.Name)
		if tool.Unchecked != "" {
			words += "  (" + tool.Unchecked + ")"
		}
		line(words)
	}
	if len(s.Others) > 0 {
		line("  not allowed by the job: " + strings.Join(s.Others, ", "))
	}
}
