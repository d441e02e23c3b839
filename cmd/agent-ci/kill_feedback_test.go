package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// reviewing is a model that looks at a file, says that it is done, and gives a review when it is asked for one.
func reviewing(w http.ResponseWriter, r *http.Request) { oneCommand("cat log.txt", w, r) }

// counting is a model that counts on in a file.
func counting(w http.ResponseWriter, r *http.Request) { oneCommand("echo step 2 >>log.txt", w, r) }

// oneCommand runs a command, says that it is done, and gives a review when it is asked for one.
func oneCommand(command string, w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	item := says("Done.")
	switch request := string(raw); {
	case strings.Contains(request, `"json_schema"`):
		item = says(`{"summary": "It counts.", "findings": [{"path": "log.txt", "line": 1, "end_line": 1, "severity": "low", "title": "Why?", "body": "It was 0."}]}`)
	case !strings.Contains(request, "_call_output"):
		item = asksToRun("1", command)
	}
	respond(w, 10, item)
}

// TestKilledAtEachRequestOfAReview kills a run that reviews a pull request, and what goes
// on with it, at each request: there is one review, with its finding on its line.
func TestKilledAtEachRequestOfAReview(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	forge := forgetest.New(t, forgetest.Options{})
	gate := new(deadly)
	address := w.throughGate(gate, forge, http.HandlerFunc(reviewing))
	for n := 0; ; n += every(5) {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("widgets-%d-%t", n, after)
			repository, repo := w.forgeCheckout(forge, address, name)
			w.proposeFeature(forge, repo, repository)
			text, killed := w.untilPublished(gate, n, after, repo, "run-"+name, "/reviewed: ", "--issue", "1", "--set", "publish.as=review", "--set", "name=review")
			reviews, onLines := repository.Reviews(1), repository.ReviewComments(1)
			if len(reviews) != 1 || len(onLines) != 1 {
				t.Fatalf("killed at request %d (after it: %t), there are %d reviews with %d comments\n%s", n, after, len(reviews), len(onLines), text)
			}
			must.Same(t, "main", w.git(repo, "rev-parse", "--abbrev-ref", "HEAD"), "killed at request", n, "after it", after, "the checkout is on")
			if n > 0 && !killed {
				if n < 8 { // three are to the model
					t.Errorf("the run makes fewer than %d requests; those to GitHub are not among them", n)
				}
				return
			}
		}
	}
}

// proposeFeature opens pull request #1, whose head is in the checkout.
func (w *killWorld) proposeFeature(forge *forgetest.Forge, repo string, repository *forgetest.Repository) {
	w.t.Helper()
	w.git(repo, "checkout", "--quiet", "-b", "feature")
	w.write(filepath.Join(repo, "log.txt"), "step 1\n")
	w.git(repo, "commit", "--quiet", "--all", "--message=count")
	w.git(repo, "push", "--quiet", repository.Dir, "feature")
	w.git(repo, "checkout", "--quiet", "main")
	request := must.Get(http.NewRequestWithContext(w.t.Context(), http.MethodPost, forge.APIURL+"/repos/octo-org/"+repository.Name+"/pulls",
		strings.NewReader(`{"title": "Count", "head": "feature", "base": "main"}`)))(w.t)
	request.Header.Set("Authorization", "Bearer "+forge.Token)
	response := must.Get(http.DefaultClient.Do(request))(w.t)
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		w.t.Fatal(response.Status)
	}
}

// TestKilledOnAPersonsBranch kills a run that was asked on a person's pull request for a commit, at each request
// from its push on, before and after the push and else one of both in turn without AGENT_CI_KILLS=100. The same
// event again makes no other commit, and there is one comment about the one that was pushed.
func TestKilledOnAPersonsBranch(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	forge := forgetest.New(t, forgetest.Options{})
	var mu sync.Mutex
	var asked []string
	gate := new(deadly)
	address := w.throughGate(gate, forge, http.HandlerFunc(counting))
	w.env = append(w.env, openly, "GITHUB_ACTIONS=true", "GITHUB_EVENT_NAME=issue_comment")
	both := gate.next
	gate.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		both.ServeHTTP(w, r)
	}))
	first, last := 0, 0
	for n := 0; n <= last; n = max(first, n+1) {
		for _, after := range []bool{false, true} {
			if n == 0 && after || n > first && every(2) > 1 && after != (n%2 == 1) {
				continue
			}
			name := fmt.Sprintf("widgets-%d-%t", n, after)
			repository, repo := w.forgeCheckout(forge, address, name)
			w.proposeFeature(forge, repo, repository)
			w.askOnPull(repository)
			asked = nil
			kill, text := n, ""
			for _, out := range []string{"run-" + name, "again-" + name} {
				w.git(w.dir, "clone", "--quiet", "--no-local", repository.Dir, "in-"+out)
				w.git(filepath.Join(w.dir, "in-"+out), "remote", "set-url", "origin", address+"/octo-org/"+name+".git")
				said, _ := w.watched(gate.aimed(kill, after), "run", "--repo", "in-"+out, "--quiet", "--out", out)
				w.awaitEnd(out)
				if kill > 0 && n == first && after { // a run that publishes nothing at GitHub writes nothing there
					w.agent(0, "run", "--repo", "in-"+out, "--quiet", "--publish", "local", "--out", "local-"+name)
					must.None(t, aboutCommits(repository), "with --publish local")
				}
				kill, text = 0, text+said
				if n == 0 && first == 0 {
					first, last = slices.Index(asked, "POST /octo-org/"+name+".git/git-receive-pack")+1, len(asked)
				}
			}
			at := fmt.Sprintf("killed at request %d of %d (after it: %t)", n, last, after)
			must.Same(t, "Count on\ncount", w.git(repository.Dir, "log", "--format=%s", "main..feature"), at, "the branch has", text)
			about := aboutCommits(repository)
			if commit := w.git(repository.Dir, "rev-parse", "feature"); len(about) != 1 || !strings.Contains(about[0], commit) {
				t.Errorf("%s, there are %d comments about commit %s: %q\n%s", at, len(about), commit, about, text)
			}
			if n == 0 && !after { // a person with the same account rewrites the commit
				clone := filepath.Join(w.dir, "in-again-"+name)
				w.git(clone, "fetch", "--quiet", repository.Dir, "feature")
				w.git(clone, "checkout", "--quiet", "--detach", "FETCH_HEAD")
				w.git(clone, "commit", "--quiet", "--amend", "--no-edit", "--date=2020-01-01T00:00:00Z")
				basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + forge.Token))
				w.git(clone, "-c", "http.extraHeader=Authorization: Basic "+basic, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/feature")
				w.agent(0, "run", "--repo", "in-again-"+name, "--quiet", "--out", "rewritten-"+name)
				rewritten := w.git(clone, "rev-parse", "HEAD")
				for _, text := range aboutCommits(repository) {
					must.Same(t, false, strings.Contains(text, rewritten), "about the rewritten commit", text)
				}
			}
		}
	}
	if first == 0 || last-first < 2 {
		t.Errorf("a run pushes at request %d of %d", first, last)
	}
}

// aboutCommits returns the comments on pull request #1 about commits of runs.
func aboutCommits(repository *forgetest.Repository) (about []string) {
	for _, c := range repository.Comments(1) {
		if strings.HasPrefix(c.Body, "<!-- agent-ci: commit -->") {
			about = append(about, c.Body)
		}
	}
	return about
}

// askOnPull asks in a comment on pull request #1 for a commit, and sets the variables of Actions that tell of it.
func (w *killWorld) askOnPull(repository *forgetest.Repository) {
	w.t.Helper()
	repository.SetRole("maintainer", "write")
	user := map[string]any{"login": "maintainer", "id": 1, "type": "User"}
	body := "/agent-ci Count on"
	id := repository.AddComment(1, forgetest.Comment{Author: forgetest.User{Login: "maintainer"}, Association: "MEMBER", Body: body})
	raw := must.Get(json.Marshal(map[string]any{
		"action": "created", "sender": user, "issue": map[string]any{"number": 1, "pull_request": map[string]any{}, "state": "open", "title": "Count", "user": user},
		"comment": map[string]any{"id": id, "body": body, "user": user, "created_at": "2126-01-01T00:00:00Z"},
	}))(w.t)
	event := filepath.Join(w.dir, repository.Name+".json")
	w.write(event, string(raw))
	w.env = append(w.env, "GITHUB_EVENT_PATH="+event, "GITHUB_REPOSITORY=octo-org/"+repository.Name)
}
