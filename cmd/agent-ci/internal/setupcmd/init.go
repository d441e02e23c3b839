// Package setupcmd has the commands before the first run: init, doctor, validate and schema.
package setupcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func InitCommand() cli.Command {
	return cli.Command{
		Name:  "init",
		Args:  "[--workflow NAME]... [--recipe NAME]... [--repo DIR] [--github [FLAGS]]",
		About: "write a starter workflow and the repository's defaults",
		Details: `
Writes .github/workflows/agent-ci-NAME.yml and .github/agent-ci.yml. Existing files
stay as they are. Workflows (default: issue):
  issue      opens a pull request for an issue with the label agent-ci
  comment    continues on a pull request, for a comment or review with /agent-ci
  schedule   runs a job file every week
  step       runs a prompt, started by hand
  two-jobs   as issue, with the writing token in a second job
  matrix     runs several job files side by side
A recipe is a job in .github/agent-ci/NAME.yml with its own workflow:` + recipeLines() + `
The workflows use the commit of agent-ci that this program was built from.

init finds checks and setup commands for .github/agent-ci.yml in go.mod, the scripts of
package.json, pytest, Cargo.toml, pom.xml, build.gradle and the target test of a
Makefile. If it finds none, it writes commented examples.

With --github, init writes nothing here. It opens a pull request with the files, sets
the secret with the model's key, creates the label, and allows workflows to open pull
requests. If your token can't do a step, it prints the page where you can. On a
terminal it asks for everything that you did not give. The key comes from a variable or
is typed unseen, and is checked with one request to the provider. GITHUB_TOKEN has the
token. The repository is the checkout's origin, or GITHUB_REPOSITORY. If the existing
files are for another provider, init stops. An existing secret stays without
--replace-secret.`,
		Example: `
agent-ci init --workflow issue --workflow comment
agent-ci init --recipe review --recipe triage
agent-ci init --github`,
		Define: defineInit,
	}
}

// defineInit defines the flags of agent-ci init. The function that it returns writes the files, or sets
// up the repository on GitHub.
func defineInit(flags *cli.FlagSet) cli.RunFunc {
	var workflows, recipes []string
	var repo string
	var onGitHub gitHubSetup
	known := onboard.Workflows()
	flags.List(&workflows, "workflow", "NAME", "workflow to write; may be repeated (default: issue)", known...)
	flags.List(&recipes, "recipe", "NAME", "recipe to write, a job and its workflow; may be repeated", onboard.Recipes()...)
	flags.Text(&repo, "repo", "DIR", "the repository (default: that of the current folder)")
	onGitHub.defineFlags(flags)
	return func(ctx context.Context, p cli.Process, _ []string) error {
		root, note := rootOf(repo)
		onGitHub.repo, onGitHub.workflows = root, workflows
		if problem := onGitHub.flagProblem(); problem != "" {
			return cli.Misuse("%s", problem)
		}
		if onGitHub.on && len(recipes) > 0 {
			return cli.Misuse("--github adds a workflow; write recipes without it, and commit them")
		}
		for _, name := range recipes {
			if !slices.Contains(onboard.Recipes(), name) {
				return cli.Misuse("there is no recipe %s; there are%s", name, recipeLines())
			}
		}
		if len(workflows)+len(recipes) == 0 {
			workflows = []string{"issue"}
		}
		for _, name := range workflows {
			if !slices.Contains(known, name) {
				return cli.Misuse("there is no workflow %s; there are %s", progress.Printable(name), strings.Join(known, ", "))
			}
		}
		if onGitHub.on {
			return onGitHub.setUp(ctx, p)
		}
		if note != "" {
			p.Print("%s", note)
		}
		return writeFiles(ctx, p, root, workflows, recipes)
	}
}

// rootOf returns the root of the repository that dir is in, or dir itself. note is what the user should know
// before files are written there, or "".
func rootOf(dir string) (root, note string) {
	here, err := os.Stat(filepath.Clean(dir))
	root, _ = gitops.WorkTree(dir)
	top, topErr := os.Stat(root) // fails without a repository
	switch {
	case err != nil: // an error of writing reports it
		return dir, ""
	case topErr != nil:
		return dir, "This is no git repository, and GitHub reads .github only at the root of one: give the root with --repo."
	case os.SameFile(here, top):
		return dir, ""
	}
	return root, "GitHub reads .github only at the root of the repository, so the files go to " + root + "."
}

// writeFiles writes the files and prints what is left to do by hand.
func writeFiles(ctx context.Context, p cli.Process, repo string, workflows, recipes []string) error {
	written, err := onboard.Write(repo, workflows, recipes, p.Build)
	for _, note := range written.Notes {
		p.Print("%s", note)
	}
	if err != nil {
		return err
	}
	for _, name := range workflows {
		for _, job := range onboard.JobFiles(name) {
			p.Print("agent-ci-%s.yml runs %s: write it, with a name and a task, and check it with agent-ci validate.", name, job)
		}
	}
	server := settings.Environment(p.Environ).ForgeServer()
	origin, _ := readOrigin(ctx, repo, p.Variable("PATH"), server) // the files need no origin
	if foreign := intake.ForeignOrigin(origin, server); foreign != "" {
		p.Print("These workflows probably do not run here%s. In another CI, start agent-ci run --publish local: it commits the change on a branch, for you to push.", foreign)
	}
	p.Print("Next:")
	for i, step := range written.NextSteps(workflows, recipes, p.Build) {
		p.Print("  %d. %s", i+1, step)
	}
	return nil
}

// recipeLines returns a line for each recipe, for the help.
func recipeLines() (lines string) {
	for _, name := range onboard.Recipes() {
		lines += fmt.Sprintf("\n  %-14s %s", name, onboard.RecipeSummary(name))
	}
	return lines
}
