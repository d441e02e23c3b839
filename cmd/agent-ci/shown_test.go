package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// TestRunForPictures makes what the first picture of the README shows: an issue, and
// the pull request that comes of it. .ci/pictures gives the folder for both.
func TestRunForPictures(t *testing.T) {
	t.Parallel()
	to := os.Getenv("AGENT_CI_PICTURES")
	if to == "" {
		t.Skip("AGENT_CI_PICTURES is not set")
	}
	const example = "../../examples/demo"
	var job struct {
		Task struct{ Title, Prompt string }
	}
	raw, err := os.ReadFile(filepath.Join(example, "job.yml"))
	if err == nil {
		err = yaml.Unmarshal(raw, &job)
	}
	session := must.Get(filepath.Abs(filepath.Join(example, "session.yml")))(t)
	must.Do(t, err)
	cache := must.Get(exec.Command("go", "env", "GOCACHE").Output())(t)
	w := newWorkshop(t, "GOCACHE="+strings.TrimSpace(string(cache)))
	checkout := filepath.Join(w.dir, "widgets")
	must.Do(t, os.CopyFS(checkout, os.DirFS(filepath.Join(example, "repository"))))
	w.write("widgets/.github/agent-ci.yml", "version: 1\nverify:\n  - {name: tests, run: go test ./...}\n  - {name: vet, run: go vet ./...}\n")
	w.git(w.dir, "init", "--quiet", "--initial-branch=main", checkout)
	w.git(checkout, "add", "--all")
	w.git(checkout, "commit", "--quiet", "--message=Order versions")
	f := forgetest.New(t, forgetest.Options{})
	repo := f.AddRepository("octo-org", "widgets")
	repo.Receive(checkout)
	w.git(checkout, "remote", "add", "origin", f.URL+"/octo-org/widgets.git")
	asked := strings.Join(strings.Fields(job.Task.Prompt), " ")
	number := repo.AddIssue(forgetest.Issue{Number: 41, Title: job.Task.Title, Body: asked, Labels: []string{"agent-ci"}})
	cmd := exec.Command(binary, "run", "--issue", fmt.Sprintf("octo-org/widgets#%d", number), "--repo", checkout, "--replay", session, "--quiet", "--out", filepath.Join(w.dir, "run"))
	cmd.Dir = w.dir
	cmd.Env = append(w.env, "GITHUB_API_URL="+f.APIURL, "GITHUB_SERVER_URL="+f.URL, "GITHUB_TOKEN="+f.Token)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pull := repo.PullRequests()[0]
	shown, err := json.Marshal(map[string]any{
		"issue": map[string]any{"number": number, "title": job.Task.Title, "body": asked},
		"pull":  map[string]any{"number": pull.Number, "title": pull.Title, "body": pull.Body},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "shown.json"), shown, 0o644)
	}
	must.Do(t, err)
}
