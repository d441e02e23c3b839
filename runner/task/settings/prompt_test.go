package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// TestReadPrompt reads a prompt that stands in the job, and one beside the job file.
func TestReadPrompt(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"job.yml": "task: {prompt_file: ask.md}", "ask.md": "\nGreet.\n", "empty.md": " \n", "long.md": strings.Repeat("x", settings.MaxFile+1)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		task   job.Task
		want   string
		reason string
	}{
		"in the job":  {job.Task{Prompt: " Greet.\n"}, "Greet.", ""},
		"beside it":   {job.Task{PromptFile: "ask.md"}, "Greet.", ""},
		"by its path": {job.Task{PromptFile: filepath.Join(folder, "ask.md")}, "Greet.", ""},
		"missing":     {job.Task{PromptFile: "none.md"}, "", "file"},
		"empty":       {job.Task{PromptFile: "empty.md"}, "", "prompt"},
		"too long":    {job.Task{PromptFile: "long.md"}, "", "prompt"},
	} {
		from := &settings.Settings{Job: job.Job{Task: c.task}, File: settings.File{Path: filepath.Join(folder, "job.yml")}}
		got, err := (&settings.Source{}).ReadPrompt(t.Context(), settings.Commit{}, from)
		var stop *outcome.Stop
		if errors.As(err, &stop); got != c.want || (stop == nil) != (c.reason == "") || stop != nil && stop.Reason != c.reason {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
