package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/job"
)

// input is what people wrote for a task, as it was when it was asked for.
type input struct {
	title    string
	parts    []clean.Part    // as written
	progress []forge.Comment // of runs, as it seems, among the comments
	ref      job.Issue
	issue    *forge.Issue // that the input is about; nil for none
}

// about is the task with the issue that the input is about.
func (in *input) about(t Task) Task {
	if in.issue != nil {
		t.Issue, t.Author = &in.ref, &in.issue.Author
	}
	return t
}

// named is a task that is the issue.
func (in *input) named(t Task) Task {
	t.Name, t.URL = "issue "+in.ref.String(), in.issue.URL
	return in.about(t)
}

// digest names the input: the same words of the same people have the same.
func (in *input) digest() (string, error) {
	raw, err := json.Marshal(struct {
		Title string
		Parts []clean.Part
	}{in.title, in.parts})
	if err != nil {
		return "", fmt.Errorf("encode the task's input: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// withWords is the task with the words of an input, of which the reader is told
// what was left out.
func (s *Source) withWords(t Task, in input, where string) (Task, error) {
	var err error
	if t.Snapshot, err = in.digest(); err != nil {
		return t, err
	}
	title, removed := clean.Text(in.title)
	t.Title, t.ProgressLike = strings.Join(strings.Fields(title), " "), in.progress
	text, more := clean.Parts(in.parts)
	t.Text = text
	if removed.Add(more); removed.Any() {
		s.Record.Warn("hidden_text", "%s held what its page does not show, which was removed: %s, %s.", where,
			counted(removed.Characters, "invisible character"), counted(removed.Comments, "HTML comment"))
	}
	return t, nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
