package onboard

import (
	"cmp"
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

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// embedded has the starter workflows, the defaults of a repository, and the recipes: each a folder with a job
// and its workflow. Errors of reading it are impossible for its own names.
//
//go:embed starter/*.yml recipes/*/*.yml
var embedded embed.FS

// defaultsName names the file of defaults in starter, beside the workflows.
const defaultsName = "agent-ci"

// Workflows returns the names of the starter workflows.
func Workflows() []string {
	return slices.DeleteFunc(namesIn("starter"), func(name string) bool { return name == defaultsName })
}

// Recipes returns the names of the recipes.
func Recipes() []string { return namesIn("recipes") }

// namesIn returns the names in an embedded folder, without .yml.
func namesIn(folder string) (names []string) {
	entries, _ := embedded.ReadDir(folder)
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yml"))
	}
	return names
}

func starterFile(name string) []byte {
	content, _ := embedded.ReadFile("starter/" + name + ".yml")
	return content
}

func recipeJob(recipe string) []byte {
	content, _ := embedded.ReadFile("recipes/" + recipe + "/job.yml")
	return content
}

// RecipeSummary returns the first sentence of a recipe's job file, without the full stop.
func RecipeSummary(recipe string) string {
	var words []string
	for line := range strings.Lines(string(recipeJob(recipe))) {
		comment, isComment := strings.CutPrefix(line, "# ")
		if !isComment {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " "), ". ")
	return strings.TrimSuffix(sentence, ".")
}

// opensPullRequests reports whether a recipe opens pull requests.
func opensPullRequests(recipe string) bool {
	return !regexp.MustCompile(`(?m)^  as: (review|labels|comment)$`).Match(recipeJob(recipe))
}

// JobFiles returns the job files that a starter workflow runs and the user has to write.
func JobFiles(workflow string) (files []string) {
	for _, job := range regexp.MustCompile(`(?m)^ +job: (\.github/.+)$`).FindAllSubmatch(starterFile(workflow), -1) {
		files = append(files, string(job[1]))
	}
	return files
}

// Written describes the files written by Write.
type Written struct {
	Notes    []string // what happened to each file
	provider Provider
	defaults bool     // the defaults were written, not only read
	checks   []string // found in the repository
}

// Write writes workflows, recipes and the defaults below dir, the repository's root. It leaves existing files
// as they are. With an error it returns what was written so far.
func Write(dir string, workflows, recipes []string, b Build) (w Written, err error) {
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return w, fmt.Errorf("open the repository %s: %w; give its root with --repo", cmp.Or(dir, "."), outcome.WithoutPath(err))
	}
	defer root.Close()
	if w.provider, err = providerIn(root); err != nil {
		return w, err
	}
	toolchain := DetectToolchain(dir)
	w.checks = toolchain.checkNames()
	files := map[string]string{DefaultsPath: "starter/" + defaultsName + ".yml"}
	for _, name := range workflows {
		files[WorkflowPath(name)] = "starter/" + name + ".yml"
	}
	for _, name := range recipes {
		files[".github/agent-ci/"+name+".yml"] = "recipes/" + name + "/job.yml"
		files[WorkflowPath(name)] = "recipes/" + name + "/workflow.yml"
	}
	for _, to := range slices.Sorted(maps.Keys(files)) {
		content, _ := embedded.ReadFile(files[to])
		if to == DefaultsPath {
			content = withChecks(content, toolchain)
		}
		content = b.PinAction(w.triggerAfterChecks(root, to, content))
		if err := w.write(root, to, w.provider.adaptWorkflow(content)); err != nil {
			return w, err
		}
	}
	return w, nil
}

// providerIn returns the provider of the existing defaults. Without defaults it is OpenAI.
func providerIn(root *os.Root) (Provider, error) {
	const longest = 1 << 20
	content, err := boundedfile.ReadIn(root, DefaultsPath, longest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Provider{}, fmt.Errorf("read %s: %w", DefaultsPath, outcome.WithoutPath(err))
	}
	provider, _, err := parseDefaults(content)
	return provider, err
}

// write writes a new file below the repository's root, and notes what it did. An existing file stays.
func (w *Written) write(root *os.Root, to string, content []byte) error {
	if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return fmt.Errorf("make %s: %w", path.Dir(to), outcome.WithoutPath(err))
	}
	f, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		w.Notes = append(w.Notes, to+" exists and stays as it is")
		return nil
	}
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", to, outcome.WithoutPath(err))
	}
	w.Notes = append(w.Notes, "wrote "+to)
	w.defaults = w.defaults || to == DefaultsPath
	return nil
}

// NextSteps returns the steps left to the user after the files were written.
func (w Written) NextSteps(workflows, recipes []string, b Build) (steps []string) {
	if !b.isKnown() {
		steps = append(steps, b.whyUnknown())
	}
	switch {
	case !w.defaults: // its checks are the user's own
	case len(w.checks) > 0:
		steps = append(steps, "look at the checks that a change must pass, in "+DefaultsPath+": "+strings.Join(w.checks, ", "))
	default:
		steps = append(steps, "write the checks that a change must pass, as verify in "+DefaultsPath)
	}
	steps = append(steps, "add the secret "+w.provider.Secret)
	if len(workflows) > 0 || slices.ContainsFunc(recipes, opensPullRequests) {
		steps = append(steps, "allow Actions to create pull requests in the settings")
	}
	if slices.Contains(workflows, "issue") {
		steps = append(steps, "create the label "+Label)
	}
	last := "commit these files to the default branch"
	if len(workflows) == 1 && len(recipes) == 0 {
		last += " (agent-ci init --github does all that)"
	}
	return append(steps, last)
}
