package main

import (
	"context"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

func hooksCommand() command {
	return command{
		name:  "hooks",
		args:  "test RUN_DIR [--job JOB.yml] [FLAGS]",
		about: "put a recorded run to the hooks that there are now, offline",
		details: `
test feeds the transcript of a run to the hooks of the repository's defaults, of
a job file and of the operator's file, in their sandbox, and tells for each
question what they decide, and where that is not what the record says. No tool is
run, no model is asked, nothing is published. What a call would have changed is
not there: of a patch hooks get the text that the model wrote in the place of the
diff, and the workspace that they see is the checkout as it is.

The exit status is 0 where all decide as the record says, 1 where something
differs or a hook does not answer cleanly, and 2 for wrong input.`,
		example: `
agent-ci hooks test ../run
agent-ci hooks test ../run --job jobs/guarded.yml --json`,
		takes: anyOperands, define: hooksTest, waits: true,
	}
}

func hooksTest(flags *flagSet) deed {
	var o runner.HookTestOptions
	var asJSON bool
	flags.variables = true
	flags.jobKeys = []string{"set"}
	flags.text(&o.Dir, "repo", "DIR", "checkout whose base commit has the hooks (default: the current folder)")
	flags.text(&o.JobFile, "job", "JOB.yml", "a job whose hooks are asked, too")
	flags.text(&o.Operator, "operator-file", "FILE", "hooks of the operator, which no job changes; outside of the checkout")
	flags.list(&o.Set, "set", "KEY=VALUE", "set a job key; may be repeated")
	flags.on(&asJSON, "json", "print the result as JSON")
	return func(ctx context.Context, p process, rest []string) int {
		if len(rest) != 2 || rest[0] != "test" {
			return flags.wrong(p, "its one subcommand is test, which takes a run directory")
		}
		o.RunDir, o.Environ, o.Reserved, o.Version = p.runDirectory(rest[1]), p.environ, reserved(), version
		ctx, stop := untilSignal(ctx)
		defer stop()
		tested, err := runner.TestHooks(ctx, o)
		if err != nil {
			return failed(p, "hooks", err)
		}
		if asJSON {
			if writeJSON(p.stdout, tested) != nil {
				return exitFailed
			}
		} else {
			showTested(p.stdout, tested)
		}
		for _, a := range tested.Answers {
			if a.Now.Decision == transcript.HookFailed {
				return exitFailed
			}
		}
		if tested.Differences() > 0 {
			return exitFailed
		}
		return exitOK
	}
}

// showTested tells a person what hooks decide.
func showTested(to io.Writer, tested *runner.HooksTested) {
	for _, a := range tested.Answers {
		fmt.Fprintln(to, progress.Printable(testedLine(a)))
	}
	for _, was := range tested.Gone {
		fmt.Fprintln(to, progress.Printable(fmt.Sprintf("%s on %s%s: not asked now; the record says %s", was.Name, was.On, ofCall(was), decided(was))))
	}
	for _, call := range tested.Unknown {
		fmt.Fprintf(to, "call %s: hooks are not asked of its output, which one withheld or replaced and of which the record has the ends alone\n", call)
	}
	fmt.Fprintf(to, "%s, %s, %s\n", transcript.Count(len(tested.Hooks), "hook"), transcript.Count(len(tested.Answers), "question"), transcript.Count(tested.Differences(), "difference"))
}

func testedLine(a runner.HookTested) string {
	line := fmt.Sprintf("%s on %s%s: %s", a.Now.Name, a.Now.On, ofCall(a.Now), decided(a.Now))
	switch {
	case a.Was == nil && a.Differs():
		return line + "; the record has no answer of it"
	case a.Differs() && decided(a.Now) == decided(*a.Was):
		return line + otherwise("instead", a.Now.After, a.Was.After) + otherwise("context", a.Now.Context, a.Was.Context)
	case a.Differs():
		return line + "; the record says " + decided(*a.Was)
	}
	return line
}

// otherwise tells of a part of an answer that differs.
func otherwise(part, now, was string) string {
	if now == was {
		return ""
	}
	return fmt.Sprintf("; %s: %q, the record says %q", part, markdown.Cut(now, 200), markdown.Cut(was, 200))
}

func ofCall(d transcript.Hook) string {
	if d.Number == 0 {
		return ""
	}
	return ", call " + d.Ref().String()
}

func decided(d transcript.Hook) string {
	if d.Reason == "" {
		return d.Decision
	}
	return d.Decision + " (" + d.Reason + ")"
}

// hookLine tells of a hook that a run would have.
func hookLine(h runner.HookStatus) string {
	line := fmt.Sprintf("%s on %s, SHA-256 %s", h.Name, h.On, h.SHA256[:16])
	if h.Trusted {
		line += ", outside of the sandbox"
	}
	if h.Problem != "" {
		return line + ", does not start: " + h.Problem
	}
	return line + ", starts"
}
