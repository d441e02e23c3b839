package forgetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReviewsAreDescribed reviews a pull request: each answer is compared with GitHub's
// description.
func TestReviewsAreDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	files := w.ask(t, "GET", widgets+"/pulls/1/files", "")
	if got := files.items(t, "filename"); !cmp.Equal(got, []any{"feature-topic.txt"}) {
		t.Errorf("the files are %v", got)
	}
	if patch := fmt.Sprint(files.items(t, "patch")[0]); !strings.HasPrefix(patch, "@@ -0,0 +1,3 @@\n+Go on") {
		t.Errorf("the patch is %q", patch)
	}
	head := w.git(t, "rev-parse", "feature/topic")
	review := func(comment string) string {
		return `{"commit_id": "` + head + `", "event": "COMMENT", "body": "Hm.", "comments": [` + comment + `]}`
	}
	for _, refused := range []string{
		`{"path": "feature-topic.txt", "line": 4, "side": "RIGHT", "body": "x"}`,
		`{"path": "main.txt", "line": 1, "side": "RIGHT", "body": "x"}`,
		`{"path": "feature-topic.txt", "line": 2, "start_line": 2, "side": "RIGHT", "start_side": "RIGHT", "body": "x"}`,
	} {
		if got := w.ask(t, "POST", widgets+"/pulls/1/reviews", review(refused)); got.status != 422 {
			t.Errorf("%s is taken: %s", refused, got.body)
		}
	}
	if got := w.ask(t, "GET", widgets+"/pulls/1/reviews", ""); len(got.items(t, "id")) > 0 {
		t.Errorf("a review that was refused is there: %s", got.body)
	}
	w.ask(t, "POST", widgets+"/pulls/1/reviews", review(`{"path": "feature-topic.txt", "line": 3, "start_line": 1, "side": "RIGHT", "start_side": "RIGHT", "body": "Why?"}`))
	got := w.ask(t, "GET", widgets+"/pulls/1/reviews", "")
	if !cmp.Equal(got.items(t, "state"), []any{"COMMENTED"}) || !cmp.Equal(got.items(t, "commit_id"), []any{head}) {
		t.Errorf("got %s", got.body)
	}
	if comments := w.ask(t, "GET", widgets+"/pulls/1/comments", ""); !cmp.Equal(comments.items(t, "body"), []any{"Why?"}) {
		t.Errorf("got %s", comments.body)
	}
	if wrong := w.Undescribed(); len(wrong) > 0 {
		t.Errorf("not described: %s", strings.Join(wrong, "\n"))
	}
}
