package setupcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/campaigncmd"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/runcmd"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/setup/doctor"
	"github.com/agent-ci/agent-ci/runner/setup/look"
	"github.com/agent-ci/agent-ci/runner/setup/preflight"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func ValidateCommand() cli.Command {
	return cli.Command{
		Name:  "validate",
		Args:  "JOB.yml... [--ready] [--mcp] [--json]",
		About: "check job files and campaigns; show every mistake with its line",
		Details: `
.github/agent-ci.yml is checked as a repository's defaults, and a file with keys of a
campaign as a campaign, together with its job_file. In a checkout it also lists the
job's hooks, with digests and whether they start, its skills with their files, and
problems of skills and of lessons (.agent-ci/lessons.yml). It reads them from the base
commit.

A job is read as a run here would read it: with the repository's defaults, --set and
AGENT_CI_ variables. A limit on the cost needs a model with a known price. If this
machine lacks the model's key, a secret or a program, that is a note; with --ready it
is a mistake. A run makes the same check first.

With --mcp the MCP servers start in their sandboxes, list their tools and stop.
No model is asked.

The exit status is 2 for a mistake, and 11 if a required server does not start.`,
		Example: `
agent-ci validate jobs/*.yml .github/agent-ci.yml
agent-ci validate jobs/lint.yml --ready`,
		Takes:  cli.Operands{Least: 1, Most: math.MaxInt, Problem: "it takes at least one job file"},
		Define: defineValidate,
	}
}

// checked is the result for one file, which validate --json prints.
type checked struct {
	set []string // KEY=VALUE assignments for the run
	raw []byte   // the file

	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Problems config.Problems `json:"problems"`
	// Servers are the MCP servers, with --mcp.
	Servers []doctor.Server `json:"mcp_servers,omitempty"`
	// Hooks lists the hooks of a run of this job in this folder. It is empty for an invalid file.
	Hooks []look.Hook `json:"hooks,omitempty"`
	// WhyHooksUnknown is set if the hooks cannot be read, though there is a checkout.
	WhyHooksUnknown string `json:"hooks_unknown,omitempty"`
	// Skills lists the skills that a run of the job in this folder could load, without their texts.
	// Skills and the fields below are empty for an invalid file.
	Skills []skills.Skill `json:"skills,omitempty"`
	// SkillProblems lists skill files that a run ignores.
	SkillProblems []skills.Problem `json:"skill_problems,omitempty"`
	// LessonsWithoutEvidence lists lessons of this checkout whose evidence was deleted.
	LessonsWithoutEvidence []proposals.LostLesson `json:"lessons_gone,omitempty"`
	// Notes lists what a run on this machine may lack. With --ready, a finding that would end the run is
	// a problem instead.
	Notes preflight.Findings `json:"notes,omitempty"`
}

// defineValidate defines the flags of agent-ci validate. The function that it returns checks the named files.
func defineValidate(flags *cli.FlagSet) cli.RunFunc {
	asJSON, servers, ready := false, false, false
	var set []string
	flags.Boolean(&ready, "ready", "treat missing keys, secrets and programs as mistakes")
	flags.List(&set, "set", "KEY=VALUE", "set a job key, as for agent-ci run; may be repeated")
	flags.Boolean(&servers, "mcp", "start the MCP servers (mcp_servers) and list their tools")
	flags.Boolean(&asJSON, "json", "print the result as JSON")
	return func(ctx context.Context, p cli.Process, files []string) error {
		ctx, stop := cli.UntilSignal(ctx)
		defer stop()
		status, results := cli.ExitOK, make([]checked, 0, len(files))
		for _, file := range files {
			result, isJob := validateFile(ctx, p, file, append(runcmd.VariableAssignments(p), set...), ready)
			if !result.Valid {
				status = cli.ExitInvalid
			}
			if !asJSON {
				result.printResult(p)
			}
			if servers && result.Valid && isJob {
				serverStatus := cli.ExitOK
				result.Servers, serverStatus = inspectServers(ctx, p, file, result.raw, !asJSON)
				status = max(status, serverStatus)
			}
			results = append(results, result)
		}
		if asJSON {
			enc := json.NewEncoder(p.Stdout)
			enc.SetIndent("", "  ")
			if err := enc.Encode(results); err != nil {
				return err
			}
		}
		return cli.Exit(status, nil)
	}
}

// validateFile validates a job, defaults or a campaign, and checks what a run on this machine would lack: with
// ready, that is a problem, else a note. isJob is false for a campaign.
func validateFile(ctx context.Context, p cli.Process, file string, set []string, ready bool) (result checked, isJob bool) {
	var problems config.Problems
	var campaign *spec.Campaign
	raw, err := boundedfile.Read(ctx, file, config.MaxSize)
	if err == nil {
		problems, campaign, err = checkFile(file, raw)
	}
	isJob = campaign == nil
	if err != nil {
		problems = config.Problems{{File: file, Message: fmt.Sprintf("cannot be read (%v); check the path", outcome.WithoutPath(err))}}
	}
	result = checked{set: set, raw: raw, File: file, Valid: len(problems) == 0, Problems: append(config.Problems{}, problems...)}
	switch {
	case !result.Valid: // mistakes come first
	case isJob:
		result.addRunFindings(ctx, p, ready)
	default:
		result.addFindings(campaignFindings(ctx, p, campaign, file), ready)
	}
	return result, isJob
}

// addRunFindings adds the hooks and skills of a run of the job in this folder, and what the run would lack. With
// ready, requirements missing on this machine are mistakes.
func (c *checked) addRunFindings(ctx context.Context, p cli.Process, ready bool) {
	inputs := settings.Inputs{JobFile: c.File, JobContent: c.raw, Set: c.set, Env: p.Environ, Reserved: runcmd.ReservedVariables()}
	if isDefaults(c.File) {
		inputs.JobFile, inputs.Defaults = "", c.File
	}
	found, err := look.Inspect(ctx, look.Options{Inputs: inputs, Dir: "."})
	if err != nil {
		stop, kind := outcome.ForError(ctx, err), preflight.Missing
		if stop.Reason == "job" { // a mistake in --set, the defaults or variables
			kind = preflight.Mistake
		}
		found.Findings = append(found.Findings, preflight.Finding{Kind: kind, Reason: stop.Reason, Message: stop.Message})
	}
	c.addHooks(found)
	if found.HooksUnknown != nil {
		c.WhyHooksUnknown = outcome.ForError(ctx, found.HooksUnknown).Message
	}
	c.addFindings(found.Findings, ready)
	c.SkillProblems, c.LessonsWithoutEvidence = found.Skills.Problems, found.LostLessons
	for _, s := range found.Skills.Skills {
		s.Text = ""
		c.Skills = append(c.Skills, s)
	}
	if len(found.LessonProblems) > 0 {
		c.Valid, c.Problems = false, append(c.Problems, found.LessonProblems...)
	}
}

// campaignFindings returns what the runs of a campaign would lack on this machine.
func campaignFindings(ctx context.Context, p cli.Process, c *spec.Campaign, file string) preflight.Findings {
	sample, err := campaigncmd.SampleJob(p, c, file)
	if err != nil {
		return preflight.Findings{{Kind: preflight.Missing, Message: outcome.Sentence(err.Error())}}
	}
	found, err := preflight.Check(ctx, preflight.Options{Job: sample, Environ: p.Environ, Publish: publish.ToForge, Path: p.Variable("PATH")})
	if err != nil {
		return preflight.Findings{{Kind: preflight.Missing, Message: outcome.Sentence(err.Error())}}
	}
	return found
}

// addFindings adds what a run would lack. Mistakes become problems. Requirements missing on this machine
// become problems with ready, and notes otherwise.
func (c *checked) addFindings(found preflight.Findings, ready bool) {
	for _, f := range found {
		isReported := slices.ContainsFunc(c.Problems, func(p config.Problem) bool { return f.Key != "" && p.Key == f.Key })
		switch {
		case isReported: // once is enough
		case f.Kind == preflight.Mistake, f.Kind == preflight.Missing && ready:
			c.Valid, c.Problems = false, append(c.Problems, config.Problem{File: c.File, Message: f.Message})
		default:
			c.Notes = append(c.Notes, f)
		}
	}
}

// addHooks adds a run's hooks. A hook that starts on no machine is a problem; a program missing only here is not.
func (c *checked) addHooks(found look.Found) {
	c.Hooks = found.Hooks
	for _, h := range c.Hooks {
		key := "hooks." + h.Name + ".run"
		isMissingHere := slices.ContainsFunc(found.Findings, func(f preflight.Finding) bool { return f.Key == key && f.Kind != preflight.Mistake })
		if h.Problem != "" && !isMissingHere {
			c.Valid = false
			c.Problems = append(c.Problems, config.Problem{File: c.File, Key: key, Message: "does not start: " + h.Problem})
		}
	}
}

// printResult prints the result of a file for a person.
func (c *checked) printResult(p cli.Process) {
	cli.ShowProblems(p, c.File, c.Problems)
	for _, h := range c.Hooks {
		p.Print("  hook %s", describeHook(h))
	}
	for _, s := range c.Skills {
		p.Print("  skill %s: %s, %s, SHA-256 %s", s.Name, s.Path, transcript.CountNoun(len(s.Files)+s.UnlistedFiles, "more file"), s.SHA256[:16])
	}
	for _, problem := range c.SkillProblems {
		p.Print("  skill %s", problem.String())
	}
	for _, l := range c.LessonsWithoutEvidence {
		p.Print("  lesson %s: its evidence is missing (%s); remove it from .agent-ci/lessons.yml, or give new evidence", l.ID, strings.Join(l.Evidence, ", "))
	}
	for _, note := range c.Notes {
		p.Print("  note: %s", outcome.ShortenNames(note.Message))
	}
	if c.WhyHooksUnknown != "" {
		p.Print("  The hooks of a run here are not known: %s", outcome.ShortenNames(c.WhyHooksUnknown))
	}
}

// isDefaults reports whether a file has the path of a repository's defaults.
func isDefaults(file string) bool {
	return strings.HasSuffix(filepath.ToSlash(filepath.Clean(file)), ".github/agent-ci.yml")
}

// checkFile returns the mistakes in a file with the content raw. campaign is nil if the file is a job or
// defaults. err means that a file cannot be read.
func checkFile(file string, raw []byte) (problems config.Problems, campaign *spec.Campaign, err error) {
	if len(raw) > config.MaxSize {
		return nil, nil, fmt.Errorf("%s has more than %d bytes", file, config.MaxSize)
	}
	switch {
	case isDefaults(file):
		_, err = job.LoadTemplate(config.Layer{Name: file, Kind: config.DefaultsLayer, Data: raw})
	case spec.IsCampaign(raw):
		campaign, err = spec.Load(file, raw, campaigncmd.ReaderBeside(file))
	default:
		_, err = job.Load(config.Layer{Name: file, Kind: config.FileLayer, Data: raw})
	}
	if errors.As(err, &problems) { // the file can be read, but has mistakes
		err = nil
	}
	return problems, campaign, err
}

// inspectServers starts the MCP servers of a job and prints their tools. A problem that would end a run sets
// status.
func inspectServers(ctx context.Context, p cli.Process, file string, content []byte, show bool) (found []doctor.Server, status int) {
	o := sandboxcommand.Options{JobFile: file, JobContent: content, Environ: p.Environ, Reserved: runcmd.ReservedVariables()}
	if isDefaults(file) {
		o.JobFile = ""
		p.Note("agent-ci validate: the servers of %s are those of the commit that is checked out, as in a run; what is not committed counts for none.", file)
	}
	found, err := doctor.DescribeServers(ctx, o)
	if err != nil {
		stop := outcome.ForError(ctx, err)
		p.Note("agent-ci validate: %s", outcome.ShortenNames(stop.Message))
		return found, stop.ExitCode()
	}
	for _, server := range found {
		if show {
			showServer(p, server)
		}
		doesNotStart := !server.Ready && server.Unknown == ""
		if doesNotStart && server.Required {
			status = outcome.ExtensionFailed.ExitCode()
		}
	}
	return found, status
}

// showServer prints an MCP server with its tools, or why it does not start.
func showServer(p cli.Process, s doctor.Server) {
	if s.Unknown != "" {
		p.Print("%s: not looked at: %s", s.Name, s.Unknown)
		return
	}
	if !s.Ready {
		p.Print("%s: does not start (%s): %s", s.Name, s.Reason, s.Why)
		return
	}
	heading := fmt.Sprintf("%s: %s %s, protocol %s", s.Name, s.Server, s.Version, s.Revision)
	if s.Deferred {
		heading += "; the model looks for its tools"
	}
	p.Print("%s", heading)
	for _, tool := range s.Tools {
		listed := fmt.Sprintf("  %s  %s", tool.SHA256, tool.Name)
		if tool.Unchecked != "" {
			listed += "  (" + tool.Unchecked + ")"
		}
		p.Print("%s", listed)
	}
	if len(s.Others) > 0 {
		p.Print("  not allowed by the job: %s", strings.Join(s.Others, ", "))
	}
}
