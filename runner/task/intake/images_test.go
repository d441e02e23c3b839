package intake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// imagesOf are the images of a task whose files beside the job these are.
func imagesOf(t *testing.T, named []string, task intake.Task, files map[string]error) (shown, missing []string, warnings int) {
	t.Helper()
	data := toolstest.PNG(t, 3, 2)
	on := &server{images: map[string][]byte{"https://forge/a.png": data, "https://forge/b.png": data, "https://forge/text": []byte("no image")}}
	s := sourceOf(t, on, &job.Job{Task: job.Task{Prompt: "Greet.", Images: named, Attachments: "images"}}, "", "")
	s.JobFiles = &besideJob{images: files, image: data}
	must.Do(t, s.Record.Make(t.TempDir(), nil))
	t.Cleanup(s.Record.Close)
	images, missing := s.FetchImages(t.Context(), task)
	for _, image := range images {
		shown = append(shown, image.Name)
		must.Same(t, "image/png", image.MediaType, image.Name)
	}
	return shown, missing, len(s.Record.Warnings())
}

// What is kept of images, and told of others, event_images.txtar plays.
func TestCollectsImagesOfTask(t *testing.T) {
	text := "![](https://forge/b.png) ![](https://forge/gone.png) ![](https://forge/text)"
	shown, missing, warnings := imagesOf(t, []string{"shot.png", "https://forge/a.png"}, intake.Task{Task: transcript.Task{Source: "issue", Text: text}}, map[string]error{"shot.png": nil})
	for i, name := range []string{"shot.png", "https://forge/a.png", "https://forge/b.png"} {
		if len(shown) != 3 || !strings.HasPrefix(shown[i], fmt.Sprintf("%q, 3×2, kept as ", name)) {
			t.Errorf("%q", shown)
		}
	}
	must.Same(t, 2, len(missing), missing)
	must.Same(t, 2, warnings, missing)
}

// TestFetchesNoImagesInPrompt fetches nothing that stands in the words of the job's own
// task: who wrote them names images in the job.
func TestFetchesNoImagesInPrompt(t *testing.T) {
	for _, source := range []string{"prompt", "job"} {
		shown, missing, _ := imagesOf(t, nil, intake.Task{Task: transcript.Task{Source: source, Text: "![](https://forge/a.png)"}}, nil)
		must.Same(t, 0, len(shown)+len(missing), source, shown, missing)
	}
}

func TestReportsMissingImages(t *testing.T) {
	files := map[string]error{
		"unread.png": outcome.Stopf(outcome.InvalidInput, "file", "unread.png cannot be read; check the path."), "odd.png": errors.New("odd"),
	}
	_, missing, _ := imagesOf(t, []string{"unread.png", "odd.png", "large.png"}, intake.Task{Task: transcript.Task{Source: "prompt"}}, files)
	want := []string{`"unread.png": unread.png cannot be read; check the path`, `"odd.png": odd`, fmt.Sprintf(`"large.png": it has more than %d MiB`, forge.MaxAttachment>>20)}
	must.Same(t, strings.Join(want, "\n"), strings.Join(missing, "\n"), missing)
}

func TestBoundsNumberOfImages(t *testing.T) {
	var named []string
	files := map[string]error{}
	for i := range 10 {
		named = append(named, fmt.Sprintf("%d.png", i))
		files[named[i]] = nil
	}
	shown, missing, warnings := imagesOf(t, named, intake.Task{Task: transcript.Task{Source: "prompt"}}, files)
	if len(shown) != 8 || len(missing) != 1 || missing[0] != "2 images more: at most 8 are shown" || warnings != 1 {
		t.Errorf("%d shown, %q missing, %d warnings", len(shown), missing, warnings)
	}
}
