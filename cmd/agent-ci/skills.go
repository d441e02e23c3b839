package main

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/skills"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

func skillsCommand() command {
	return command{
		name:  "skills",
		args:  "[list] [--job JOB.yml] [--json] [FLAGS]",
		about: "list the skills that a run here could load",
		details: `
Lists the skills of the base commit, by the repository's defaults and a job file:
name, file, digest and description, and problems of files that are not used. Nothing
runs. The exit status is 2 for wrong input, such as an unknown skill in skills.allow.`,
		example: `
agent-ci skills
agent-ci skills --job jobs/release.yml --json`,
		takes: operands{most: 1, problem: "its one subcommand is list"}, define: listSkills,
	}
}

// skillList is what skills --json prints.
type skillList struct {
	Skills   []skills.Skill   `json:"skills"` // without their texts
	Problems []skills.Problem `json:"problems"`
}

func listSkills(flags *flagSet) deed {
	var o runner.Checked
	var asJSON bool
	flags.variables = true
	flags.jobKeys = []string{"set"}
	flags.text(&o.Dir, "repo", "DIR", "checkout whose base commit has the skills (default: the current folder)")
	flags.text(&o.JobFile, "job", "JOB.yml", "a job whose skills are listed")
	flags.list(&o.Set, "set", "KEY=VALUE", "set a job key; may be repeated")
	flags.on(&asJSON, "json", "print the list as JSON")
	return func(ctx context.Context, p process, rest []string) int {
		if len(rest) == 1 && rest[0] != "list" {
			return flags.wrong(p, "its one subcommand is list")
		}
		o.Environ, o.Reserved, o.Version = p.environ, reserved(), version
		ctx, stop := untilSignal(ctx)
		defer stop()
		found, err := runner.ListSkills(ctx, o)
		if err != nil {
			return failed(p, "skills", err)
		}
		list := skillList{Skills: []skills.Skill{}, Problems: append([]skills.Problem{}, found.Problems...)}
		for _, s := range found.Skills {
			s.Text = ""
			list.Skills = append(list.Skills, s)
		}
		if asJSON {
			if writeJSON(p.stdout, list) != nil {
				return exitFailed
			}
			return exitOK
		}
		for _, s := range list.Skills {
			fmt.Fprintln(p.stdout, progress.Printable(skillLine(s)))
			fmt.Fprintln(p.stdout, "  "+progress.Printable(s.Description))
		}
		for _, problem := range list.Problems {
			fmt.Fprintln(p.stdout, progress.Printable(problem.String()))
		}
		fmt.Fprintf(p.stdout, "%s, %s\n", transcript.Count(len(list.Skills), "skill"), transcript.Count(len(list.Problems), "problem"))
		return exitOK
	}
}

// skillLine tells of a skill that a run could load.
func skillLine(s skills.Skill) string {
	return fmt.Sprintf("%s: %s, %s, SHA-256 %s", s.Name, s.Path, transcript.Count(len(s.Files)+s.FilesMore, "more file"), s.SHA256[:16])
}
