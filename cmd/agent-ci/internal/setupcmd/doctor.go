package setupcmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/runcmd"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/setup/doctor"
	"github.com/agent-ci/agent-ci/runner/setup/look"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func DoctorCommand() cli.Command {
	return cli.Command{
		Name:  "doctor",
		Args:  "[--repo DIR] [--online] [--json]",
		About: "show what this machine supports: confinement, git, API access",
		Details: `
Tries each way to confine commands. Nothing leaves this machine without --online.
With it, GitHub is asked about the repository, and the model's API for its models and
by small requests for what a run needs. They cost some thousand tokens; the output
shows how many, and which settings make the endpoint work. No secret is printed.

The exit status is 0 if a run could start, 1 if something is missing, and 2 for wrong
flags. docs/reference/doctor.md describes the JSON.`,
		Example: `
agent-ci doctor
agent-ci doctor --online --json`,
		Define: defineDoctor,
	}
}

// defineDoctor defines the flags of agent-ci doctor. The function that it returns prints diagnosis and hooks.
func defineDoctor(flags *cli.FlagSet) cli.RunFunc {
	var o doctor.Options
	var asJSON bool
	flags.Text(&o.Dir, "repo", "DIR", "checkout to look at (default: the current folder)")
	var operator string
	flags.FromVariables = true
	flags.OperatorFile(&operator)
	flags.Boolean(&o.Online, "online", "ask the model's API and GitHub, too")
	flags.Boolean(&asJSON, "json", "print JSON")
	return func(ctx context.Context, p cli.Process, _ []string) error {
		ctx, stop := cli.UntilSignal(ctx)
		defer stop()
		o.Environ, o.Reserved, o.Version = p.Environ, runcmd.ReservedVariables(), p.Version
		found, err := doctor.Diagnose(ctx, o)
		if err != nil {
			return err
		}
		run, hooksErr := look.Inspect(ctx, look.Options{Inputs: settings.Inputs{Env: p.Environ, Reserved: runcmd.ReservedVariables()}, Dir: cmp.Or(o.Dir, "."), Operator: operator})
		if asJSON {
			err = plainjson.Write(p.Stdout, diagnosisWithHooks{found, run.Hooks})
		} else {
			showDiagnosis(p, found)
			showHooks(p, run.Hooks, found, cmp.Or(hooksErr, run.HooksUnknown))
		}
		if err != nil {
			return err
		}
		hookFails := slices.ContainsFunc(run.Hooks, func(h look.Hook) bool { return h.Problem != "" })
		if found.Broken() || hookFails {
			return cli.Exit(cli.ExitFailed, nil)
		}
		return nil
	}
}

// diagnosisWithHooks is the JSON of a diagnosis together with a run's hooks.
type diagnosisWithHooks struct {
	*doctor.Diagnosis
	Hooks []look.Hook `json:"hooks,omitempty"`
}

// showHooks prints the hooks of a run, or err, why they are unknown. Outside of a checkout it does not print err.
func showHooks(p cli.Process, hooks []look.Hook, d *doctor.Diagnosis, err error) {
	if err != nil && d.Git.Checkout != "" {
		p.Print("")
		p.Print("The hooks of a run are not known: %s.", strings.TrimSuffix(err.Error(), "."))
	}
	if len(hooks) > 0 {
		p.Print("")
		p.Print("Hooks of a run:")
	}
	for _, h := range hooks {
		p.Print("- %s", describeHook(h))
	}
}

// showDiagnosis prints the diagnosis for a person: the findings, then remedies for what is missing.
func showDiagnosis(p cli.Process, d *doctor.Diagnosis) {
	line := func(name, format string, args ...any) {
		p.Print("%-14s %s", name, fmt.Sprintf(format, args...))
	}
	line("agent-ci", "%s on %s", d.AgentCI, d.System)
	c := d.Confinement
	line("confinement", "%s, with policy.sandbox: %s, policy.network: %s", c.Level, c.Sandbox, c.Network)
	if c.Proxy != "" {
		line("", "hosts are reached by the machine's proxy: %s", c.Proxy)
	}
	for _, secret := range c.Secrets {
		line("", "secret %s", secret)
	}
	for _, layer := range c.Layers {
		line("", "- %s", layer)
	}
	for _, t := range c.Trials {
		verdict := "works, " + cmp.Or(doctor.ProcessLimit(t.Layers), "processes not limited")
		if !t.Works {
			verdict = "does not work: " + t.Missing
		}
		line("", "%s %s", t.Level, verdict)
	}
	for _, s := range c.Settings {
		line("", "%s = %s", s.Name, s.Value)
	}
	if tree := (transcript.Policy{WorkTree: c.WorkTree, NoOverlay: c.NoOverlay}).DescribeWorkTree(); tree != "" {
		line("work tree", "%s", tree)
	}
	showAccess(line, d)
	showFindings(p, d.Problems)
}

// showAccess prints the access to git, the model's API and GitHub, with the credentials for each.
func showAccess(line func(name, format string, args ...any), d *doctor.Diagnosis) {
	git := "none"
	if d.Git.Path != "" {
		git = cmp.Or(d.Git.Version, "of unknown version") + ", " + d.Git.Path
	}
	line("git", "%s", git)
	if d.Git.Checkout != "" {
		line("", "checkout %s on %s, origin %s", d.Git.Checkout, d.Git.Base, orNone(d.Git.Origin))
		line("", "credentials in its configuration: %s", orNone(strings.Join(d.Git.Credentials, ", ")))
	}
	access := "key in " + orNone(d.Model.KeyName) + ": is not set"
	switch {
	case d.Model.Auth == "oidc":
		access = "keyless, with a token of " + orNone(d.Model.Identity)
	case d.Model.KeySet:
		access = "key in " + orNone(d.Model.KeyName) + ": is set"
	}
	line("model", "%s at %s, %s", d.Model.Name, d.Model.BaseURL, access)
	line("", "%s", describeAnswer(d.Model.Answer))
	showEndpoint(func(text string) { line("", "%s", text) }, d.Model.Endpoint)
	line("github", "%s at %s, token: %s", orNone(d.GitHub.Repository), d.GitHub.APIURL, d.GitHub.Token)
	line("", "%s", describeAnswer(d.GitHub.Answer))
	if d.GitHub.Scopes != "" {
		line("", "scopes: %s", d.GitHub.Scopes)
	}
	permissions := slices.Sorted(maps.Keys(d.GitHub.Permissions))
	permissions = slices.DeleteFunc(permissions, func(name string) bool { return !d.GitHub.Permissions[name] })
	if len(permissions) > 0 {
		line("", "permissions: %s", strings.Join(permissions, ", "))
	}
}

// showEndpoint prints the capabilities of the model's endpoint, and the job settings that suit it.
func showEndpoint(line func(string), e *doctor.Endpoint) {
	if e == nil {
		return
	}
	for _, c := range e.Capabilities {
		answer := "yes"
		if !c.Works {
			answer = "no: " + c.Note
		}
		line(c.Name + ": " + answer)
	}
	cost := ""
	if e.CostUSD != nil {
		cost = fmt.Sprintf(", %.4f US dollars", *e.CostUSD)
	}
	line(fmt.Sprintf("%d requests, %d tokens%s", e.Requests, e.Tokens, cost))
	if len(e.Settings) == 0 {
		return
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(e.Settings)) {
		keys = append(keys, key+": "+formatSetting(e.Settings[key]))
	}
	line("set in the job: model: {" + strings.Join(keys, ", ") + "}")
}

// formatSetting formats the value of a job key.
func formatSetting(value any) string {
	if quirks, is := value.([]model.Quirk); is {
		return model.ListOf(quirks)
	}
	return fmt.Sprint(value)
}

func orNone(s string) string { return cmp.Or(s, "none") }

// describeAnswer describes what a server answered to a request of --online.
func describeAnswer(a doctor.Answer) string {
	switch {
	case !a.Asked:
		return "not asked; --online asks"
	case !a.Reachable:
		return "not reachable: " + a.Error
	}
	return fmt.Sprintf("reachable, status %d", a.Status)
}

// showFindings prints problems with their remedies.
func showFindings(p cli.Process, problems []doctor.Problem) {
	if len(problems) == 0 {
		p.Print("")
		p.Print("Nothing is in the way of a run.")
	}
	for _, problem := range problems {
		p.Print("")
		p.Print("%s (%s): %s", problem.Severity, problem.About, problem.Message)
		if problem.Remedy != "" {
			p.Print("  %s", problem.Remedy)
		}
	}
}

// describeHook describes a hook, and whether it starts.
func describeHook(h look.Hook) string {
	line := fmt.Sprintf("%s on %s, SHA-256 %s", h.Name, h.Event, h.SHA256[:16])
	if h.Trusted {
		line += ", outside of the sandbox"
	}
	if h.Problem != "" {
		return line + ", does not start: " + h.Problem
	}
	return line + ", starts"
}
