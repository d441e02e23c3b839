package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed starter/*.yml recipes/*/*.yml
var starter embed.FS

// starterDefaults is the one file of starter that is no workflow.
const starterDefaults = "agent-ci.yml"

func initCommand() command {
	return command{
		name:  "init",
		args:  "[--workflow NAME]... [--recipe NAME]... [--repo DIR] [--github [FLAGS]]",
		about: "write a starter workflow and the repository's defaults",
		details: `
Writes .github/workflows/agent-ci-NAME.yml and .github/agent-ci.yml, and leaves a
file that is there as it is. The workflows, of which issue is written without
--workflow:
  issue      a label on an issue makes a pull request
  comment    a comment or review that begins with /agent-ci
  schedule   a job file every week
  step       by hand, with a prompt
  two-jobs   the agent without a token that may write
  matrix     several job files side by side
A recipe is a job in .github/agent-ci/NAME.yml with a workflow of its own:` + listRecipes() + `
They use the commit of agent-ci that this program was built from.

With --github the files are not written here: a pull request adds them, and the
secret with the model's key, the label and the setting that lets workflows open
pull requests are set, or it is said what to click. What is not given is asked
where there is a terminal. The key is checked with one request to the provider; it
comes from a variable or is typed unseen, like the token (GITHUB_TOKEN). The
repository is that of the checkout's origin, or GITHUB_REPOSITORY. --remove takes
all of it away again, but what a person has to undo.`,
		example: `
agent-ci init --workflow issue --workflow comment
agent-ci init --recipe review --recipe triage
agent-ci init --github
agent-ci init --github --remove`,
		define: initialise,
	}
}

func initialise(flags *flagSet) deed {
	var workflows, recipes []string
	var repo string
	var onGitHub gitHubSetup
	known := starterNames()
	flags.list(&workflows, "workflow", "NAME", "workflow to write; may be repeated (default: issue)")
	flags.choices["workflow"] = known
	flags.list(&recipes, "recipe", "NAME", "recipe to write, a job and its workflow; may be repeated")
	flags.choices["recipe"] = recipeNames()
	flags.text(&repo, "repo", "DIR", "the repository's root (default: the current folder)")
	onGitHub.define(flags)
	return func(ctx context.Context, p process, _ []string) int {
		onGitHub.repo, onGitHub.workflows = repo, workflows
		if problem := onGitHub.wrong(); problem != "" {
			return flags.wrong(p, "%s", problem)
		}
		if onGitHub.on && len(recipes) > 0 {
			return flags.wrong(p, "--github adds a workflow; write recipes without it, and commit them")
		}
		if unknown := unknownRecipe(recipes); unknown != "" {
			return flags.wrong(p, "there is no recipe %s; there are%s", unknown, listRecipes())
		}
		if len(workflows)+len(recipes) == 0 {
			workflows = []string{"issue"}
		}
		for _, name := range workflows {
			if !slices.Contains(known, name) {
				return flags.wrong(p, "there is no workflow %s; there are %s", name, strings.Join(known, ", "))
			}
		}
		if onGitHub.on {
			return onGitHub.run(ctx, p)
		}
		if err := writeStarter(p, repo, workflows, recipes); err != nil {
			fmt.Fprintf(p.stderr, "agent-ci init: %v\n", err)
			return exitFailed
		}
		tellJobFiles(p, workflows)
		tellNext(p)
		return exitOK
	}
}

// tellNext says what is left to do by hand.
func tellNext(p process) {
	next := "add the secret OPENAI_API_KEY, allow Actions to create pull requests in the settings, and commit these files to the default branch (agent-ci init --github does all that)."
	if b := built(); !b.Known() {
		next = b.Unknown() + "; then " + next
	}
	fmt.Fprintln(p.stdout, "Next: "+next)
}

func starterNames() []string {
	entries, _ := starter.ReadDir("starter") // part of the program
	var names []string
	for _, entry := range entries {
		if entry.Name() != starterDefaults {
			names = append(names, strings.TrimSuffix(entry.Name(), ".yml"))
		}
	}
	return names
}

// jobInput is where a workflow names the job file that it runs.
const jobInput = `(?m)^ +job: (\.github/.+)$`

// tellJobFiles names the job files that the workflows need and nobody can write
// but who knows what is to be done.
func tellJobFiles(p process, workflows []string) {
	for _, name := range workflows {
		content, _ := starter.ReadFile(path.Join("starter", name+".yml")) // part of the program
		for _, job := range regexp.MustCompile(jobInput).FindAllSubmatch(content, -1) {
			fmt.Fprintf(p.stdout, "agent-ci-%s.yml runs %s: write it, with a name and a task, and check it with agent-ci validate.\n", name, job[1])
		}
	}
}

func writeStarter(p process, repo string, workflows, recipes []string) error {
	root, err := os.OpenRoot(filepath.Clean(repo))
	if err != nil {
		return fmt.Errorf("open the repository: %w; give its root with --repo", err)
	}
	defer root.Close()
	files := map[string]string{".github/" + starterDefaults: path.Join("starter", starterDefaults)}
	for _, name := range workflows {
		files[".github/workflows/agent-ci-"+name+".yml"] = path.Join("starter", name+".yml")
	}
	for _, name := range recipes {
		maps.Copy(files, recipeFiles(name))
	}
	for _, to := range slices.Sorted(maps.Keys(files)) {
		if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
			return fmt.Errorf("make %s: %w", path.Dir(to), err)
		}
		if err := writeNew(p, root, to, files[to]); err != nil {
			return err
		}
	}
	return nil
}

func writeNew(p process, root *os.Root, to, from string) error {
	content, err := starter.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		fmt.Fprintf(p.stdout, "%s is there already and was left as it is\n", to)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	_, err = f.Write(built().Pinned(content))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	fmt.Fprintf(p.stdout, "wrote %s\n", to)
	return nil
}
