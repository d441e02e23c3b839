package onboard

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

const commit = "0123456789abcdef0123456789abcdef01234567"

func content(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(embedded.ReadFile("starter/" + name + ".yml"))(t))
}

func TestPinsWorkflowsToBuild(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		build Build
		uses  string
		known bool
		setup bool
	}{
		"a release":            {Build{Version: "v1.2.3", Commit: commit}, "agent-ci/agent-ci@v1.2.3", true, false},
		"a commit":             {Build{Version: "v0.0.0-test", Commit: commit}, "agent-ci/agent-ci@" + commit, true, true},
		"a changed tree":       {Build{Commit: commit, Modified: true}, "agent-ci/agent-ci@COMMIT", false, true},
		"an unknown commit":    {Build{}, "agent-ci/agent-ci@COMMIT", false, true},
		"a commit's beginning": {Build{Commit: commit[:12]}, "agent-ci/agent-ci@COMMIT", false, true},
	} {
		for _, workflow := range []string{"issue", "comment", "schedule", "step", "two-jobs", "matrix"} {
			was := content(t, workflow)
			got := string(c.build.PinAction([]byte(was)))
			if strings.Count(got, "- uses: "+c.uses+" ") != strings.Count(was, "agent-ci/agent-ci@v0") || strings.Contains(got, "@v0 ") || c.build.isKnown() != c.known {
				t.Errorf("%s, %s:\n%s", name, workflow, got)
			}
			var parsed struct {
				Jobs map[string]struct{ Steps []map[string]any }
			}
			must.Do(t, yaml.Unmarshal([]byte(got), &parsed), name, workflow)
			for _, job := range parsed.Jobs {
				setup := false
				for _, step := range job.Steps {
					uses, _ := step["uses"].(string)
					setup = setup || strings.HasPrefix(uses, "actions/setup-go@")
					if strings.HasPrefix(uses, "agent-ci/") && setup != c.setup {
						t.Errorf("%s, %s: Go before the action: %v", name, workflow, setup)
					}
				}
			}
		}
	}
	must.Contain(t, (Build{Commit: commit, Modified: true}).whyUnknown(), "changed tree")
}

func TestChecksKeyWithOneRequest(t *testing.T) {
	t.Parallel()
	var asked []string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	defer server.Close()
	p, _ := ProviderNamed("other")
	p = must.Get(p.WithBaseURL(server.URL + "/v1/"))(t)
	for _, c := range []struct {
		status  int
		checked bool
		fails   string
	}{
		{200, true, ""}, {404, false, ""}, {401, true, "refuses the key (status 401)"}, {403, true, "refuses the key"}, {500, false, "try again later"}, {302, false, ""}, {400, false, ""},
	} {
		status, asked = c.status, nil
		checked, err := p.CheckKey(t.Context(), "sk-1")
		if checked != c.checked || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%d: %v, %v", c.status, checked, err)
		}
		must.Same(t, []string{"GET /v1/models Bearer sk-1"}, asked)
	}
	p = must.Get(p.WithBaseURL("http://127.0.0.1:1/v1"))(t)
	if _, err := p.CheckKey(t.Context(), "sk-1"); err == nil || !strings.Contains(err.Error(), "does not answer") || strings.Contains(err.Error(), "sk-1") {
		t.Errorf("nobody there: %v", err)
	}
	for _, address := range []string{"ftp://host/v1", "https://me:pw@host/v1", "host/v1", "https://host/v1?key=x", "http://host/v1", "http://192.168.0.1/v1"} {
		must.Fail(t, "", must.Err(p.WithBaseURL(address)), address, "is taken")
	}
}

// world is a repository on a forge, of one commit.
type world struct {
	forge *forgetest.Forge
	repo  *forgetest.Repository
	hub   github.Setup
}

func newWorld(t *testing.T) world {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{})
	client := must.Get(github.New(github.Options{APIURL: f.APIURL, Token: f.Token, Clock: forgetest.AtOnce{}}))(t)
	w := world{f, f.AddRepository("octo", "widgets"), client.Setup("octo/widgets")}
	seed := gittest.Seeded(t)
	seed.Git("push", "-q", w.repo.Dir, "main")
	return w
}

func (w world) git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", w.repo.Dir}, args...)...).CombinedOutput()
	must.Do(t, err, args, out)
	return strings.TrimSpace(string(out))
}

func (w world) setup(t *testing.T) Setup {
	t.Helper()
	p, _ := ProviderNamed("openrouter")
	return Setup{Provider: p, Model: `qwen: "x"`, Key: "sk-or-1", Workflow: "issue", Build: Build{Commit: commit}, Server: w.forge.URL}
}

func TestLeavesForbiddenStepsToPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forbidden := forgetest.Reply{Status: 403, Body: `{"message": "Resource not accessible by personal access token"}`}
	w.forge.On("GET", "/repos/octo/widgets/actions/secrets/public-key", forbidden, 1)
	w.forge.On("PUT", "/repos/octo/widgets/actions/permissions/workflow", forgetest.Reply{Status: 409, Body: `{"message": "Conflict"}`}, 1)
	w.forge.On("POST", "/repos/octo/widgets/labels", forbidden, 1)
	s := w.setup(t)
	s.Build.Modified = true
	report, err := s.Apply(t.Context(), w.hub)
	if err != nil || len(report.Left) != 4 || report.URL == "" {
		t.Fatalf("%+v, %v", report, err)
	}
	for i, want := range []string{"/octo/widgets/settings/actions", "/octo/widgets/labels", "replace COMMIT", "/octo/widgets/settings/secrets/actions/new"} {
		if !strings.Contains(report.Left[i], want) || !strings.Contains(w.repo.PullRequests()[0].Body, report.Left[i]) {
			t.Errorf("%q lacks %s, or the pull request does", report.Left[i], want)
		}
	}

	w = newWorld(t)
	w.forge.On("POST", "/repos/octo/widgets/git/refs", forbidden, 1)
	must.Fail(t, "workflows: write", must.Err(w.setup(t).Apply(t.Context(), w.hub)), "a token that may write no workflow")
	if _, set := w.repo.Secret("OPENROUTER_API_KEY"); set {
		t.Error("the secret is set before the branch is made")
	}
	w.git(t, "branch", "agent-ci-setup", "main")
	must.Fail(t, "has a branch agent-ci-setup", must.Err(w.setup(t).Apply(t.Context(), w.hub)), "a branch in the way")
}
