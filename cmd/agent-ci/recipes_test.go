package main_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"
)

// recipeCommands run the workflows of recipes as GitHub Actions would.
var recipeCommands = map[string]func(*testscript.TestScript, bool, []string){
	"workflow":  usage("NAME [EXPRESSION=VALUE]…", runWorkflow),
	"permitted": usage("NAME [PERMISSION…]", checkPermissions),
}

type recipeStep struct {
	ID, Uses, Run, If string
	Env, With         map[string]string
}

type recipeWorkflow struct {
	On          map[string]any
	Permissions map[string]string
	Jobs        map[string]struct {
		If          string
		Permissions map[string]string
		Steps       []recipeStep
	}
}

// readRecipe reads the one job of a recipe's workflow.
func readRecipe(raw string) (permissions map[string]string, steps []recipeStep, err error) {
	var w recipeWorkflow
	if err := yaml.Unmarshal([]byte(raw), &w); err != nil {
		return nil, nil, err
	}
	if len(w.Jobs) != 1 || len(w.Permissions) != 0 {
		return nil, nil, fmt.Errorf("it has %d jobs and permissions for all of them: %v", len(w.Jobs), w.Permissions)
	}
	for _, job := range w.Jobs {
		permissions, steps = job.Permissions, job.Steps
	}
	return permissions, steps, nil
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]+?) *\}\}`)

// runWorkflow runs the steps of a recipe's workflow in the folder of a checkout, up to that
// of the action, whose inputs it gives to the next agent-ci action:
// workflow NAME [EXPRESSION=VALUE]….
func runWorkflow(ts *testscript.TestScript, args []string) {
	known := map[string]string{
		"secrets.OPENAI_API_KEY": ts.Getenv("OPENAI_API_KEY"), "github.token": ts.Getenv("GITHUB_TOKEN"), "github.event_name": ts.Getenv("GITHUB_EVENT_NAME"),
		"secrets.AGENT_CI_TOKEN || github.token": ts.Getenv("GITHUB_TOKEN"),
	}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		known[name] = value
	}
	fill := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(found string) string { return known[expression.FindStringSubmatch(found)[1]] })
	}
	_, steps, err := readRecipe(ts.ReadFile(".github/workflows/agent-ci-" + args[0] + ".yml"))
	ts.Check(err)
	for _, step := range steps {
		if m := regexp.MustCompile(`^([\w.]+) (==|!=) '(\w*)'$`).FindStringSubmatch(step.If); step.If != "" && (m == nil || (known[m[1]] == m[3]) != (m[2] == "==")) {
			fmt.Fprintln(ts.Stdout(), "left out: "+step.If)
			continue
		}
		switch {
		case step.Run != "":
			maps.Copy(known, outputsOf(ts, step, fill))
		case strings.HasPrefix(step.Uses, "agent-ci/agent-ci@"):
			giveInputs(ts, step, fill)
		}
	}
}

// outputsOf runs the script of a step, and gives its outputs as expressions.
func outputsOf(ts *testscript.TestScript, step recipeStep, fill func(string) string) map[string]string {
	file := filepath.Join(ts.Getenv("RUNNER_TEMP"), "step")
	ts.Check(os.WriteFile(file, nil, 0o600))
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", step.Run)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "RUNNER_TEMP", "GITHUB_REPOSITORY", "ALERTS", "WEEK", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "GITHUB_OUTPUT="+file)
	for name, value := range step.Env {
		cmd.Env = append(cmd.Env, name+"="+fill(value))
	}
	out, err := cmd.CombinedOutput()
	fmt.Fprintf(ts.Stdout(), "%s", out)
	if err != nil {
		fmt.Fprintf(ts.Stdout(), "the step %s failed: %v\n", step.ID, err)
	}
	raw, err := os.ReadFile(file)
	ts.Check(err)
	outputs := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		outputs["steps."+step.ID+".outputs."+name] = value
	}
	return outputs
}

// giveInputs sets the variables by which the action gets its inputs, and those of its step.
func giveInputs(ts *testscript.TestScript, step recipeStep, fill func(string) string) {
	raw, err := os.ReadFile("../../action.yml")
	ts.Check(err)
	var file actionFile
	ts.Check(yaml.Unmarshal(raw, &file))
	for name, value := range step.Env {
		ts.Setenv(name, fill(value))
	}
	for _, each := range file.Runs.Steps {
		for name, value := range each.Env {
			input, is := strings.CutPrefix(value, "${{ inputs.")
			if given, there := step.With[strings.TrimSuffix(input, " }}")]; is && there {
				ts.Setenv(name, fill(given))
			}
		}
	}
}

// needed says which permission a request to the forge takes: METHOD PATTERN, permission,
// level.
var needed = [][4]string{
	{"POST", "/octo/widgets.git/git-receive-pack", "contents", "write"},
	{"POST", "/octo/widgets.git/git-upload-pack", "contents", "read"},
	{"GET", "/repos/octo/widgets/git/*/*", "contents", "read"},
	{"POST", "/repos/octo/widgets/pulls", "pull-requests", "write"},
	{"PATCH", "/repos/octo/widgets/pulls/*", "pull-requests", "write"},
	{"POST", "/repos/octo/widgets/pulls/*/reviews", "pull-requests", "write"},
	{"GET", "/repos/octo/widgets/pulls", "pull-requests", "read"},
	{"GET", "/repos/octo/widgets/pulls/*", "pull-requests", "read"},
	{"GET", "/repos/octo/widgets/pulls/*/*", "pull-requests", "read"},
	{"GET", "/repos/octo/widgets/commits/*/check-runs", "checks", "read"},
	{"GET", "/repos/octo/widgets/commits/*/status", "statuses", "read"},
	{"GET", "/repos/octo/widgets/actions/*/*", "actions", "read"},
	{"GET", "/repos/octo/widgets/actions/*/*/*", "actions", "read"},
	{"POST", "/repos/octo/widgets/actions/runs/*/rerun-failed-jobs", "actions", "write"},
	{"GET", "/repos/octo/widgets/issues/*", "issues", "read"},
	{"GET", "/repos/octo/widgets/issues/*/comments", "issues", "read"},
}

// onIssue are calls on an issue or, where there is none, on a pull request.
var onIssue = []string{"/repos/octo/widgets/issues/*/labels", "/repos/octo/widgets/issues/*/comments"}

// checkPermissions compares the calls that were counted from the last sent on with the
// permissions of a recipe's workflow, in both directions: permitted NAME [PERMISSION…],
// with permissions that other steps need.
func checkPermissions(ts *testscript.TestScript, args []string) {
	permissions, _, err := readRecipe(ts.ReadFile(".github/workflows/agent-ci-" + args[0] + ".yml"))
	ts.Check(err)
	w := worldOf(ts)
	used := map[string]string{"contents": "read"} // the checkout
	for _, r := range w.forge.Requests()[w.counted:] {
		for _, need := range needed {
			if matched, _ := path.Match(need[1], r.Path); matched && r.Method == need[0] && used[need[2]] != "write" {
				used[need[2]] = need[3]
			}
		}
		for _, pattern := range onIssue {
			if matched, _ := path.Match(pattern, r.Path); matched && r.Method != "GET" {
				if permissions["pull-requests"] != "write" {
					used["issues"] = "write"
				}
			}
		}
	}
	for name, level := range used {
		if has := permissions[name]; has != "write" && has != level {
			ts.Fatalf("it needs %s: %s, and has %q", name, level, has)
		}
	}
	for name, level := range permissions {
		if used[name] != level && !slices.Contains(args[1:], name+":"+level) {
			ts.Fatalf("it has %s: %s, and uses %q", name, level, used[name])
		}
	}
}

// TestEachRecipeHasScript holds that a script runs each recipe that init writes, and that
// docs/how-to/recipes.md tells of it.
func TestEachRecipeHasScript(t *testing.T) {
	t.Parallel()
	folders := must.Get(filepath.Glob("../../runner/setup/onboard/recipes/*"))(t)
	must.Same(t, 8, len(folders), "recipes")
	page := read(t, "../../docs/how-to/recipes.md")
	for _, folder := range folders {
		name := filepath.Base(folder)
		script := "testdata/script/recipe_" + strings.ReplaceAll(name, "-", "_") + ".txtar"
		must.Same(t, true, strings.Contains(read(t, script), "--recipe "+name+"\n"), script, "writes no recipe", name)
		must.Same(t, true, strings.Contains(page, "--recipe "+name), "docs/how-to/recipes.md does not tell of", name)
	}
}
