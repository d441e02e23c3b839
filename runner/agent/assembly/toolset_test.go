package assembly

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

func TestChoosesToolsetByModel(t *testing.T) {
	sessions, programs, commandLine := []string{"exec_command", "write_stdin"}, []string{"shell"}, []string{"shell_command"}
	const function, freeform, operation = tools.Function, tools.Freeform, tools.Operation
	for _, test := range []struct {
		model, form  string
		runs         []string
		shell, patch tools.Form
	}{
		{"gpt-5", "auto", sessions, function, freeform},
		{"codex-mini-latest", "auto", programs, tools.LocalShellAction, function},
		{"o3", "auto", programs, function, function},
		{"qwen3-coder", "auto", commandLine, function, function},
		{"gpt-5", "function", sessions, function, function},
		{"qwen3-coder", "freeform", commandLine, function, freeform},
		{"gpt-5.1", "builtin", programs, tools.ShellAction, operation},
		{"codex-mini-latest", "builtin", programs, tools.LocalShellAction, operation},
	} {
		t.Run(test.model+" "+test.form, func(t *testing.T) {
			p := toolsetOf(catalog.ProfileOf(test.model), test.form)
			must.Same(t, test.runs, p.CommandTools)
			must.Same(t, test.shell, p.Shell)
			must.Same(t, test.patch, p.Patch)
		})
	}
}

func TestOffersToolsNamedByJob(t *testing.T) {
	want := []string{"update_plan", "read_file", "list_dir", "grep_files", "view_image", "exec_command", "write_stdin", "apply_patch", "shell"}
	suits := toolsetOf(catalog.ProfileOf("gpt-5"), "auto")
	must.Same(t, want, suits.offeredNames(false, []string{"shell"}))
	want = slices.Insert(want, len(want)-1, "request_user_input")
	must.Same(t, want, suits.offeredNames(true, []string{"shell"}), "with people to ask")
}

func TestOffersNoImagesToBlindModel(t *testing.T) {
	for name, sees := range map[string]bool{"o3-mini": false, "o3": true, "gpt-5.4": true, "gpt-6.1-sol": true, "foo3": true} {
		must.Same(t, sees, slices.Contains(toolsetOf(catalog.ProfileOf(name), "auto").offeredNames(false, nil), "view_image"), name)
	}
}

// definition is what of a tool's definition tells which tool it is, and in what form.
type definition struct{ Type, Name string }

func TestDefinesOfferedAndAllowedTools(t *testing.T) {
	hosted := []map[string]any{{"type": "web_search", "name": ""}}
	for _, test := range []struct {
		name string
		set  func(*job.Job)
		want []definition
	}{
		{"what suits the model", func(*job.Job) {}, []definition{
			{"function", "update_plan"},
			{"function", "read_file"},
			{"function", "list_dir"},
			{"function", "grep_files"},
			{"function", "view_image"},
			{"function", "exec_command"},
			{"function", "write_stdin"},
			{"custom", "apply_patch"},
			{"web_search", ""},
		}},
		{"not what is denied, by an alias too", func(j *job.Job) { j.Tools.Deny = []string{"bash", "update_plan", "grep", "ls", "view_image"} }, []definition{
			{"function", "read_file"}, {"function", "write_stdin"}, {"custom", "apply_patch"}, {"web_search", ""},
		}},
		{"nothing but what is allowed", func(j *job.Job) { j.Tools.Allow = []string{"shell_command", "apply_patch"} }, []definition{
			{"function", "shell_command"}, {"custom", "apply_patch"}, {"web_search", ""},
		}},
		{"built in", func(j *job.Job) { j.Model.Tools, j.Tools.Allow = "builtin", []string{"shell", "apply_patch"} }, []definition{
			{"shell", ""}, {"apply_patch", ""}, {"web_search", ""},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &job.Job{Model: job.Model{Name: "gpt-5", Tools: "auto"}, Tools: job.Tools{Hosted: hosted}}
			test.set(j)
			raw := briefed(t, site(t, j, nil), "  - output: [{say: unused}]\n").conversation.Settings.Tools
			got := make([]definition, len(raw))
			for i := range raw {
				must.Do(t, json.Unmarshal(raw[i], &got[i]))
			}
			must.Same(t, test.want, got)
		})
	}
}

func TestRefusesUnknownToolName(t *testing.T) {
	_, err := New(t.Context(), site(t, &job.Job{Tools: job.Tools{Allow: []string{"teleport"}}}, nil))
	outcometest.Want(t, err, "invalid_input/unknown_tool", `tools.allow: there is no tool "teleport"; the tools are update_plan, read_file,`)
}
