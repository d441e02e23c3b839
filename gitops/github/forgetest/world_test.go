package forgetest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// world is a forge with one repository, which has the branches main and topic,
// topic one commit further.
type world struct {
	*forgetest.Forge
	repo     *forgetest.Repository
	checkout string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{})
	w := &world{Forge: f, repo: f.AddRepository("octo", "widgets"), checkout: t.TempDir()}
	w.git(t, "init", "--quiet", "--initial-branch=main")
	w.git(t, "remote", "add", "bare", w.repo.Dir)
	w.commit(t, "main", "Begin")
	w.git(t, "checkout", "--quiet", "-b", "feature/topic")
	w.commit(t, "feature/topic", "Go on\n\nWith a body.")
	return w
}

// commit makes a commit with one file on the branch that is checked out, and
// puts it into the forge.
func (w *world) commit(t *testing.T, branch, message string) {
	t.Helper()
	name := strings.ReplaceAll(branch, "/", "-") + ".txt"
	file, err := os.OpenFile(filepath.Join(w.checkout, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintln(file, message)
	if closeErr := file.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	w.git(t, "add", name)
	w.git(t, "commit", "--quiet", "--message="+message)
	w.git(t, "push", "--quiet", "bare", "HEAD:refs/heads/"+branch)
}

// git runs git in the checkout and ends the test when it fails.
func (w *world) git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.tryGit(t, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w *world) tryGit(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = w.checkout
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.checkout, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Tester", "GIT_AUTHOR_EMAIL=tester@example.invalid",
		"GIT_COMMITTER_NAME=Tester", "GIT_COMMITTER_EMAIL=tester@example.invalid",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05+02:00", "GIT_COMMITTER_DATE=2026-01-02T03:04:05+02:00",
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// reply is an answer as it arrived.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// field gives a field of a JSON object, or of one below it: a.b.
func (r reply) field(t *testing.T, name string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(r.body, &value); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	for _, part := range strings.Split(name, ".") {
		object, _ := value.(map[string]any)
		value = object[part]
	}
	return value
}

// items gives a field of each object of a JSON list.
func (r reply) items(t *testing.T, name string) []any {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal(r.body, &list); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	values := []any{}
	for _, each := range list {
		values = append(values, each[name])
	}
	return values
}

// ask sends a request with the forge's token.
func (w *world) ask(t *testing.T, method, path, body string) reply {
	t.Helper()
	return w.askAs(t, "Bearer "+w.Token, method, path, body)
}

func (w *world) askAs(t *testing.T, authorization, method, path, body string) reply {
	t.Helper()
	return w.send(t, authorization, method, w.APIURL+path, body)
}

func (w *world) send(t *testing.T, authorization, method, url, body string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, read}
}
