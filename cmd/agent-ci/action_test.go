package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
)

// described is an input or output of action.yml.
type described struct {
	Description string
	Default     string
	Value       string
}

// actionFile is action.yml, with inputs and outputs in their order.
type actionFile struct {
	Inputs, Outputs yaml.Node
	Runs            struct {
		Using string
		Steps []struct {
			ID, Uses, Shell, Run, If string
			Env, With                map[string]string
			Continue                 bool `yaml:"continue-on-error"`
		}
	}
}

func readAction(t *testing.T) actionFile {
	t.Helper()
	raw := read(t, "../../action.yml")
	var file actionFile
	must.Do(t, yaml.Unmarshal([]byte(raw), &file))
	return file
}

func names(t *testing.T, node yaml.Node) ([]string, map[string]described) {
	t.Helper()
	var order []string
	for i := 0; i < len(node.Content); i += 2 {
		order = append(order, node.Content[i].Value)
	}
	var all map[string]described
	must.Do(t, node.Decode(&all))
	return order, all
}

// TestActionIsDocumented holds the tables of docs/reference/action.md to action.yml.
func TestActionIsDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/reference/action.md")
	file := readAction(t)
	inputs, input := names(t, file.Inputs)
	outputs, output := names(t, file.Outputs)
	var want []string
	for _, name := range inputs {
		fallback := ""
		if value := input[name].Default; value != "" {
			fallback = "`" + value + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", name, fallback, input[name].Description))
	}
	for _, name := range outputs {
		want = append(want, fmt.Sprintf("| `%s` | %s |", name, output[name].Description))
	}
	var got []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	must.Same(t, want, got, "docs/reference/action.md (-action.yml +docs)")
	must.Same(t, slices.Sorted(slices.Values(progress.Outputs)), slices.Sorted(slices.Values(outputs)), "outputs (-set +action.yml)")
	for name, out := range output {
		must.Same(t, "${{ steps.agent-ci.outputs."+name+" }}", out.Value, "the output", name, "has the value")
	}
}

// TestActionPassesInputsInEnvironment keeps what a workflow gives out of
// scripts, and other people's actions but the one that uploads out of this one.
func TestActionPassesInputsInEnvironment(t *testing.T) {
	t.Parallel()
	file := readAction(t)
	inputs, _ := names(t, file.Inputs)
	used := ""
	for _, step := range file.Runs.Steps {
		if uploads := "actions/upload-artifact@" + pins["actions/upload-artifact"]; step.Uses == uploads {
			used += step.If
			continue
		}
		if strings.Contains(step.Run, "${{") || step.Uses != "" || step.Shell != "bash" {
			t.Errorf("a step has uses %q, shell %q and runs %q", step.Uses, step.Shell, step.Run)
		}
		used += step.If
		for _, value := range step.Env {
			used += " " + value
		}
	}
	for _, name := range inputs {
		must.Same(t, true, regexp.MustCompile(`\binputs\.`+name+`\b`).MatchString(used), "the input", name, "is not used")
	}
	must.Same(t, 4, len(file.Runs.Steps), "steps of the action")
}

// TestInstallRefusesRunInputs gives the command install each input that has no default.
func TestInstallRefusesRunInputs(t *testing.T) {
	t.Parallel()
	file, refused := readAction(t), 0
	_, inputs := names(t, file.Inputs)
	folders := filepath.Join(t.TempDir(), "folders")
	for _, step := range file.Runs.Steps {
		for variable, value := range step.Env {
			name := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
			if input, is := inputs[name]; !is || input.Default != "" {
				continue
			}
			cmd := exec.Command(binary, "action")
			cmd.Env = []string{"AGENT_CI_COMMAND=install", "GITHUB_PATH=" + folders, variable + "=given"}
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no use for the input "+name+";") {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
			refused++
		}
	}
	if _, err := os.Stat(folders); err == nil || refused != 10 {
		t.Errorf("%d inputs are refused, and folders are there: %v", refused, err == nil)
	}
}

// TestActionUploadsReportFiles holds the last step to a few files of a run, whatever
// became of it, and to changing nothing of how that ended.
func TestActionUploadsReportFiles(t *testing.T) {
	t.Parallel()
	steps := readAction(t).Runs.Steps
	step := steps[len(steps)-1]
	if step.If != "always() && inputs.upload == 'true' && steps.agent-ci.outputs.artifact != ''" || !step.Continue {
		t.Errorf("it uploads if %s, and a failure of that is none: %v", step.If, step.Continue)
	}
	var files []string
	for line := range strings.Lines(step.With["path"]) {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "${{ steps.agent-ci.outputs.run-directory }}/")
		must.Same(t, true, found, "it uploads", line)
		files = append(files, name)
	}
	must.Same(t, []string{record.ReportFile, record.TranscriptFile, record.ResultFile, record.PublishFile}, files, "it uploads")
	if step.With["name"] != "${{ steps.agent-ci.outputs.artifact }}" || step.With["retention-days"] != "14" {
		t.Errorf("it uploads with %v", step.With)
	}
}

// pins are the commits at which workflows use actions of others.
var pins = map[string]string{
	"actions/checkout":                "3d3c42e5aac5ba805825da76410c181273ba90b1",
	"actions/setup-go":                "b7ad1dad31e06c5925ef5d2fc7ad053ef454303e",
	"actions/upload-artifact":         "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a",
	"actions/download-artifact":       "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c",
	"actions/cache":                   "9255dc7a253b0ccc959486e2bca901246202afeb",
	"actions/attest-build-provenance": "4d101475d8b20a2381f78447822ac1eab6504dd8",
}

// TestWorkflowsPinAndRestrict reads the examples and this repository's own
// workflows: pinned, with no more permissions than written down, and without
// anything of an event in a script.
func TestWorkflowsPinAndRestrict(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"../../examples/workflows/*.yml", "../../.github/workflows/*.yml", "../../runner/setup/onboard/recipes/*/workflow.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	inputs, _ := names(t, readAction(t).Inputs)
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "../../"), func(t *testing.T) { checkWorkflow(t, file, inputs) })
	}
}

// TestCommentsCancelNoQueuedRun reads the group of the workflow that anybody's
// comment starts: GitHub ends what waits in a group when more comes to it.
func TestCommentsCancelNoQueuedRun(t *testing.T) {
	t.Parallel()
	var w struct {
		Jobs struct {
			Agent struct{ Concurrency struct{ Group string } }
		}
	}
	must.Do(t, yaml.Unmarshal([]byte(read(t, examples+"workflows/comment.yml")), &w))
	group := w.Jobs.Agent.Concurrency.Group
	shape := regexp.MustCompile(`^agent-ci-issue-\$\{\{ !contains\(fromJSON\('(\[[^']*\])'\), github\.event\.comment\.author_association \|\| github\.event\.review\.author_association\) ` +
		`&& \(github\.event\.issue\.number \|\| github\.event\.pull_request\.number\) \|\| github\.run_id \}\}$`)
	m := shape.FindStringSubmatch(group)
	if m == nil {
		t.Fatalf("the group is %q", group)
	}
	var strangers []string
	if err := json.Unmarshal([]byte(m[1]), &strangers); err != nil || !slices.Contains(strangers, "NONE") || slices.Contains(strangers, "CONTRIBUTOR") {
		t.Errorf("those with groups of their own are %q, %v", strangers, err) // who hides a membership is a contributor
	}
}

type workflow struct {
	Permissions *yaml.Node
	Concurrency *yaml.Node
	Jobs        map[string]struct {
		Permissions map[string]string
		Concurrency *yaml.Node
		Timeout     int `yaml:"timeout-minutes"`
		Steps       []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

func checkWorkflow(t *testing.T, file string, inputs []string) {
	raw := read(t, file)
	var w workflow
	must.Do(t, yaml.Unmarshal([]byte(raw), &w))
	if w.Permissions == nil {
		t.Error("permissions are not set")
	}
	for name, job := range w.Jobs {
		if w.Concurrency == nil && job.Concurrency == nil {
			t.Errorf("%s runs beside itself", name)
		}
		if job.Timeout == 0 {
			t.Errorf("%s has no timeout", name)
		}
		for _, step := range job.Steps {
			must.Same(t, false, strings.Contains(step.Run, "${{"), name, "an expression stands in a script", step.Run)
			action, ref, _ := strings.Cut(step.Uses, "@")
			switch {
			case step.Uses == "":
			case action == "agent-ci/agent-ci":
				for with := range step.With {
					must.Same(t, true, slices.Contains(inputs, with), name, "the action has no input", with)
				}
			case pins[action] != ref:
				t.Errorf("%s uses %s", name, step.Uses)
			case action == "actions/checkout" && step.With["persist-credentials"] != "false":
				t.Errorf("%s leaves the token in the checkout", name)
			}
		}
	}
}

// TestExampleWorkflowsMatchInit holds examples/workflows to what init writes where the
// commit is not known: there is no release that an example could name.
func TestExampleWorkflowsMatchInit(t *testing.T) {
	t.Parallel()
	starters := must.Get(filepath.Glob("../../runner/setup/onboard/starter/*.yml"))(t)
	must.Same(t, 7, len(starters), "starters")
	for _, file := range starters {
		if filepath.Base(file) == "agent-ci.yml" { // the defaults, no workflow
			continue
		}
		example := examples + "workflows/" + filepath.Base(file)
		golden.Compare(t, example, string(onboard.Build{}.PinAction([]byte(read(t, file)))))
	}
	golden.Compare(t, examples+"workflows/review.yml", string(onboard.Build{}.PinAction([]byte(read(t, "../../runner/setup/onboard/recipes/review/workflow.yml")))))
}

// TestDocsNameNoUnpublishedRelease reads what a person copies from.
func TestDocsNameNoUnpublishedRelease(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/*/*.md", examples + "workflows/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			must.Same(t, false, strings.Contains(read(t, file), "uses: agent-ci/agent-ci@v"), file, "uses a release, and there is none")
		}
	}
}
