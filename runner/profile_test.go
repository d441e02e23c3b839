package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/tools"
)

func TestProfiles(t *testing.T) {
	const function, freeform, operation = tools.Function, tools.Freeform, tools.Operation
	for _, test := range []struct {
		model, form  string
		runs         []string
		shell, patch tools.Form
	}{
		{"gpt-5.1-codex", "auto", sessions, function, freeform},
		{"gpt-5-codex", "auto", sessions, function, freeform},
		{"gpt-5", "auto", sessions, function, freeform},
		{"GPT-5.2", "auto", sessions, function, freeform},
		{"openai/gpt-5-mini", "auto", sessions, function, freeform},
		{"team-codex", "auto", sessions, function, freeform},
		{"codex-mini-latest", "auto", programs, tools.LocalShellAction, function},
		{"o3", "auto", programs, function, function},
		{"o4-mini", "auto", programs, function, function},
		{"gpt-4.1", "auto", programs, function, function},
		{"azure/prod_gpt-4o", "auto", programs, function, function},
		{"openai/gpt-oss-120b", "auto", programs, function, function},
		{"foo3", "auto", commandLine, function, function},
		{"mygpt-5", "auto", commandLine, function, function},
		{"qwen3-coder", "auto", commandLine, function, function},
		{"", "auto", commandLine, function, function},

		{"gpt-5", "function", sessions, function, function},
		{"qwen3-coder", "freeform", commandLine, function, freeform},
		{"gpt-5.1", "builtin", programs, tools.ShellAction, operation},
		{"codex-mini-latest", "builtin", programs, tools.LocalShellAction, operation},
	} {
		t.Run(test.model+" "+test.form, func(t *testing.T) {
			p := profileOf(test.model, test.form)
			if diff := cmp.Diff(test.runs, p.runs); diff != "" || p.shell != test.shell || p.patch != test.patch {
				t.Errorf("shell %d, patch %d, runs (-want +got):\n%s", p.shell, p.patch, diff)
			}
		})
	}
}

func TestToolsThatTheJobNamesAreOfferedToo(t *testing.T) {
	want := []string{"update_plan", "read_file", "list_dir", "grep_files", "view_image", "exec_command", "write_stdin", "apply_patch", "shell"}
	if diff := cmp.Diff(want, profileOf("gpt-5", "auto").offered([]string{"shell"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
