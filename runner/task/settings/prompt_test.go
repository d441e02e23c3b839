package settings_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// TestReadPrompt reads a prompt that stands in the job, and one beside the job file.
func TestReadPrompt(t *testing.T) {
	folder := t.TempDir()
	files{"ask.md": "\nGreet.\n", "empty.md": " \n", "long.md": strings.Repeat("x", settings.MaxFileBytes+1)}.put(t, folder)
	for file, reason := range map[string]string{"": "", "ask.md": "", filepath.Join(folder, "ask.md"): "", "none.md": "file", "empty.md": "prompt", "long.md": "prompt"} {
		from := &settings.Settings{Job: job.Job{Task: job.Task{Prompt: " Greet.\n", PromptFile: file}}, File: settings.File{Path: filepath.Join(folder, "job.yml")}}
		got, err := (&settings.Source{}).ReadPrompt(t.Context(), settings.Commit{}, from)
		if reason != "" {
			outcometest.Want(t, err, "invalid_input/"+reason)
		} else if err != nil || got != "Greet." {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
}
