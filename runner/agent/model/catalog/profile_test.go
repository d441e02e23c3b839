package catalog

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRecognisesModelNames(t *testing.T) {
	for name, want := range map[string]struct {
		known                 bool
		window                int64
		commands, patch       string
		reasoning, toolSearch bool
	}{
		"gpt-5.5":                   {true, 272_000, "exec_command", "freeform", true, true},
		"gpt-5.4-2026-03-05":        {true, 272_000, "exec_command", "freeform", true, true},
		"openai/gpt-5.4-nano":       {true, 272_000, "exec_command", "freeform", true, true},
		"gpt-5.6":                   {true, 128_000, "exec_command", "freeform", true, true},
		"openai/gpt-5.2":            {true, 272_000, "exec_command", "freeform", true, false},
		"GPT-5.2":                   {true, 272_000, "exec_command", "freeform", true, false},
		"gpt-5.1-codex":             {true, 272_000, "exec_command", "freeform", true, false},
		"gpt-5":                     {true, 272_000, "exec_command", "freeform", true, false},
		"my-codex-deployment":       {true, 128_000, "exec_command", "freeform", true, false},
		"qwen3-coder":               {false, 128_000, "shell_command", "function", true, false},
		"somebody/gpt-4.1-mini":     {true, 1_047_576, "shell", "function", false, false},
		"gpt-4o-2024-11-20":         {true, 128_000, "shell", "function", false, false},
		"gpt-3.5-turbo":             {true, 128_000, "shell", "function", false, false},
		"o4-mini":                   {true, 200_000, "shell", "function", true, false},
		"openai/gpt-oss-120b":       {true, 128_000, "shell", "function", true, false},
		"gpt-5.1-something":         {true, 128_000, "exec_command", "freeform", true, false},
		"prod_gpt-5.5":              {true, 272_000, "exec_command", "freeform", true, true},
		"azure/prod_gpt-4o":         {true, 128_000, "shell", "function", false, false},
		"mygpt-5":                   {false, 128_000, "shell_command", "function", true, false},
		"foo3":                      {false, 128_000, "shell_command", "function", true, false},
		"":                          {false, 128_000, "shell_command", "function", true, false},
		"gpt-5.5-but-not-2026-1-01": {true, 128_000, "exec_command", "freeform", true, true},
	} {
		p := ProfileOf(name)
		if p.Known() != want.known || p.ContextWindow != want.window || p.Commands != want.commands || p.Patch != want.patch || p.Reasoning != want.reasoning || p.ToolSearch != want.toolSearch {
			t.Errorf("Of(%s) = %+v, want %+v", name, p, want)
		}
	}
}

// TestProfilesHaveSources holds the rule that no price is made up.
func TestProfilesHaveSources(t *testing.T) {
	file := must.Get(readProfiles(profilesYAML))(t)
	for _, entry := range file.Models {
		if entry.Patch != "freeform" && entry.Patch != "function" {
			t.Errorf("%v: patch is %s", entry.Models, entry.Patch)
		}
		if entry.Shell != file.Default.Shell && entry.Shell != "local_shell" {
			t.Errorf("%v: shell is %s", entry.Models, entry.Shell)
		}
		if entry.Commands != file.Default.Commands && entry.Commands != "exec_command" && entry.Commands != "shell" {
			t.Errorf("%v: commands is %s", entry.Models, entry.Commands)
		}
	}
	must.Same(t, true, file.Default.Price == nil, "the default has no price")
}

func TestRefusesIncompleteProfiles(t *testing.T) {
	const start = "version: 1\ndefault: {context_window: 1, commands: shell, shell: function, patch: function, reasoning: true}\n"
	for _, text := range []string{
		"version: 1\ndefault: {}\n",
		start + "models: [{models: [a]}]\n",
		start + "models: [{source: x}]\n",
		start + "models: [{models: ['[']  , source: x}]\n",
		start + "prices: 1\n",
	} {
		must.Fail(t, "", must.Err(readProfiles([]byte(text))), "no error for", text)
	}
}
