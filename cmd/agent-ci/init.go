package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
)

//go:embed starter/*.yml recipes/*/*.yml
var starter embed.FS

// starterDefaults names starter's file of defaults; the others are workflows.
const starterDefaults = "agent-ci.yml"

func initCommand() command {
	return command{
		name:  "init",
		args:  "[--workflow NAME]... [--recipe NAME]... [--repo DIR] [--github [FLAGS]]",
		about: "write a starter workflow and the repository's defaults",
		details: `
Writes .github/workflows/agent-ci-NAME.yml and .github/agent-ci.yml. Existing files
stay as they are. Workflows (default: issue):
  issue      opens a pull request for an issue with the label agent-ci
  comment    continues on a pull request, for a comment or review with /agent-ci
  schedule   runs a job file every week
  step       runs a prompt, started by hand
  two-jobs   as issue, with the writing token in a second job
  matrix     runs several job files side by side
A recipe is a job in .github/agent-ci/NAME.yml with its own workflow:` + listRecipes() + `
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
		example: `
agent-ci init --workflow issue --workflow comment
agent-ci init --recipe review --recipe triage
agent-ci init --github`,
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
				return flags.wrong(p, "there is no workflow %s; there are %s", progress.Printable(name), strings.Join(known, ", "))
			}
		}
		if onGitHub.on {
			return onGitHub.run(ctx, p)
		}
		written, err := writeStarter(p, repo, workflows, recipes)
		if err != nil {
			return initFailed(p, err)
		}
		tellJobFiles(p, workflows)
		tellPlace(p, repo)
		tellNext(p, written, workflows, recipes)
		return exitOK
	}
}

// tellPlace says that GitHub does not read what was written, where it was not written to the
// root of a repository.
func tellPlace(p process, repo string) {
	if _, err := os.Lstat(filepath.Join(filepath.Clean(repo), ".git")); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(p.stdout, "There is no .git here, and GitHub reads .github only at the root of a repository: give the root with --repo.")
	}
}

// tellNext says what is left to do by hand for the files that were asked for.
func tellNext(p process, written started, workflows, recipes []string) {
	next := []string{"add the secret " + written.provider.Secret}
	switch {
	case !written.defaults: // whose checks are somebody's own
	case len(written.checks) > 0:
		next = append([]string{"look at the checks that a change must pass, in " + onboard.DefaultsPath + ": " + strings.Join(written.checks, ", ")}, next...)
	default:
		next = append([]string{"write the checks that a change must pass, as verify in " + onboard.DefaultsPath}, next...)
	}
	if b := built(); !b.Known() {
		next = append([]string{b.Unknown()}, next...)
	}
	if len(workflows) > 0 || slices.ContainsFunc(recipes, opensPulls) {
		next = append(next, "allow Actions to create pull requests in the settings")
	}
	if slices.Contains(workflows, "issue") {
		next = append(next, "create the label "+onboard.Label)
	}
	last := "commit these files to the default branch"
	if len(workflows) == 1 && len(recipes) == 0 {
		last += " (agent-ci init --github does all that)"
	}
	fmt.Fprintln(p.stdout, "Next:")
	for i, step := range append(next, last) {
		fmt.Fprintf(p.stdout, "  %d. %s\n", i+1, step)
	}
}

// opensPulls says whether what comes of a recipe is a pull request.
func opensPulls(recipe string) bool {
	job, _ := starter.ReadFile(path.Join(recipesFolder, recipe, "job.yml")) // part of the program
	return !regexp.MustCompile(`(?m)^  as: (review|labels|comment)$`).Match(job)
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

// started is what the files that were written are for.
type started struct {
	provider onboard.Provider
	defaults bool     // these were written
	checks   []string // of them
}

// writeStarter writes the files.
func writeStarter(p process, repo string, workflows, recipes []string) (s started, err error) {
	root, err := os.OpenRoot(filepath.Clean(repo))
	if err != nil {
		return s, fmt.Errorf("open the repository: %w; give its root with --repo", err)
	}
	defer root.Close()
	if s.provider, err = providerOf(root); err != nil {
		return s, err
	}
	toolchains := onboard.Detect(root.FS())
	s.checks = onboard.Checks(toolchains)
	files := map[string]string{onboard.DefaultsPath: path.Join("starter", starterDefaults)}
	for _, name := range workflows {
		files[onboard.WorkflowPath(name)] = path.Join("starter", name+".yml")
	}
	for _, name := range recipes {
		maps.Copy(files, recipeFiles(name))
	}
	for _, to := range slices.Sorted(maps.Keys(files)) {
		if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
			return s, fmt.Errorf("make %s: %w", path.Dir(to), err)
		}
		content, err := starter.ReadFile(files[to])
		if err != nil {
			return s, err
		}
		if to == onboard.DefaultsPath {
			content = onboard.WithChecks(content, toolchains)
		}
		wrote, err := writeNew(p, root, to, s.provider.Of(built().Pinned(watchThose(p, root, to, content))))
		if err != nil {
			return s, err
		}
		s.defaults = s.defaults || wrote && to == onboard.DefaultsPath
	}
	return s, nil
}

// providerOf reads the provider from existing defaults, else it is OpenAI. Workflows pass this
// provider's key.
func providerOf(root *os.Root) (onboard.Provider, error) {
	const longest = 1 << 20
	f, err := root.Open(onboard.DefaultsPath)
	if errors.Is(err, fs.ErrNotExist) {
		provider, _, err := onboard.OfDefaults(nil)
		return provider, err
	}
	if err != nil {
		return onboard.Provider{}, fmt.Errorf("read %s: %w", onboard.DefaultsPath, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil {
		return onboard.Provider{}, fmt.Errorf("read %s: %w", onboard.DefaultsPath, err)
	}
	provider, _, err := onboard.OfDefaults(content)
	return provider, err
}

func writeNew(p process, root *os.Root, to string, content []byte) (wrote bool, err error) {
	f, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		fmt.Fprintf(p.stdout, "%s exists and stays as it is\n", to)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write %s: %w", to, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("write %s: %w", to, err)
	}
	fmt.Fprintf(p.stdout, "wrote %s\n", to)
	return true, nil
}
