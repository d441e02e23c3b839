package catalog

import (
	"testing"
)

func TestRecognisesModelNames(t *testing.T) {
	for name, want := range map[string]struct {
		known  bool
		window int64
		patch  string
	}{
		"gpt-5.5":                   {true, 272_000, "freeform"},
		"gpt-5.4-2026-03-05":        {true, 272_000, "freeform"},
		"openai/gpt-5.2":            {true, 272_000, "freeform"},
		"GPT-5.2":                   {true, 272_000, "freeform"},
		"gpt-5.1-codex":             {true, 272_000, "freeform"},
		"my-codex-deployment":       {true, 128_000, "freeform"},
		"qwen3-coder":               {false, 128_000, "function"},
		"somebody/gpt-4.1-mini":     {true, 1_047_576, "function"},
		"gpt-5.1-something":         {true, 128_000, "freeform"},
		"prod_gpt-5.5":              {true, 272_000, "freeform"},
		"mygpt-5":                   {false, 128_000, "function"},
		"gpt-5.5-but-not-2026-1-01": {true, 128_000, "freeform"},
	} {
		p := Of(name)
		if p.Known() != want.known || p.ContextWindow != want.window || p.Patch != want.patch {
			t.Errorf("Of(%s) = %+v, want %+v", name, p, want)
		}
	}
}

func TestKnowsModelsWithoutReasoning(t *testing.T) {
	for name, reasons := range map[string]bool{
		"gpt-4.1": false, "gpt-4o-2024-11-20": false, "gpt-3.5-turbo": false, "gpt-5.1-codex": true, "o4-mini": true, "gpt-oss-120b": true, "some-model": true,
	} {
		if got := Of(name).Reasoning; got != reasons {
			t.Errorf("%s reasons: %t", name, got)
		}
	}
}

func TestKnowsModelsWithToolSearch(t *testing.T) {
	for name, looks := range map[string]bool{
		"gpt-5.5": true, "gpt-5.4-2026-03-05": true, "openai/gpt-5.4-nano": true, "gpt-5.6": true, "gpt-5.2": false, "gpt-5.1-codex": false, "gpt-5": false,
		"gpt-4.1": false, "o4-mini": false, "some-model": false,
	} {
		if got := Of(name).ToolSearch; got != looks {
			t.Errorf("%s looks for tools: %t", name, got)
		}
	}
}

// TestProfilesHaveSources holds the rule that no price is made up.
func TestProfilesHaveSources(t *testing.T) {
	file, err := readProfiles(profilesYAML)
	if err != nil {
		t.Fatal(err)
	}
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
	if file.Default.Price.Known() {
		t.Error("the default has a price")
	}
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
		if _, err := readProfiles([]byte(text)); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
}
