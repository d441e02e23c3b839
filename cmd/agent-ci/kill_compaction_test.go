package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// forgetful is a stepwise model with a small window: what it has done it knows
// from the item that stands for the conversation before.
type forgetful struct{ stepwise }

// perItem is how many tokens an item costs, in a window of 10000.
const perItem = 1500

func (f forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	items, err := inputOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	done, tries, again := stepsDone(items)
	if !strings.HasSuffix(r.URL.Path, "/responses/compact") {
		f.answer(w, done, tries, again, perItem*len(items))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "resp_2", "object": "response.compaction", "created_at": 1, "usage": map[string]any{"input_tokens": 5, "output_tokens": 1},
		"output": []any{map[string]any{"type": "compaction", "id": "cmp_1", "encrypted_content": fmt.Sprintf("%d %d", done, tries)}},
	})
}

// TestKilledDuringCompaction kills a run at each request, those
// that make the conversation shorter among them.
func TestKilledDuringCompaction(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	gate := w.gate
	gate.answer(forgetful{6})

	want := ""
	for n := 0; ; n++ {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("%d-%t", n, after)
			repo, out := w.checkout("repo-"+name), "run-"+name
			text, ended := w.watched(gate.aimed(n, after), "run", "--prompt", "x", "--repo", repo, "--out", out, "--publish", "local", "--quiet", "--set", "model.context_window=10000")
			killed := !ended
			for at := n; !ended; at = 0 {
				text, ended = w.watched(gate.aimed(at, after), "resume", out, "--quiet")
			}
			if !strings.HasPrefix(text, "changed/committed") {
				t.Fatalf("killed at request %d (after it: %t), the run ended in %s", n, after, text)
			}
			got := w.git(repo, "rev-parse", "HEAD^{tree}")
			if n == 0 {
				want = got
			}
			if got != want {
				t.Fatalf("killed at request %d (after it: %t), the tree is %s, not %s", n, after, got, want)
			}
			if shorter := w.compactions(out); shorter < 2 {
				t.Fatalf("killed at request %d (after it: %t), the conversation was made shorter %d times", n, after, shorter)
			}
			if text, ok := w.agent(0, "report", out, "--verify"); !ok || !strings.Contains(text, "the chain is whole") {
				t.Errorf("killed at request %d (after it: %t): %s", n, after, text)
			}
			if n > 0 && !killed {
				return
			}
		}
	}
}

// compactions is how often a run made its conversation shorter.
func (w *killWorld) compactions(out string) (n int) {
	w.t.Helper()
	for _, event := range readEvents(w.t, filepath.Join(w.dir, out, "transcript.jsonl")) {
		if event.Type == transcript.TypeCompaction {
			n++
		}
	}
	return n
}
