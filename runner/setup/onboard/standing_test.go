package onboard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// push commits files to a branch as somebody else does.
func (w world) push(t *testing.T, branch string, files map[string]string) {
	t.Helper()
	w.change(t, branch, func(dir string) {
		for path, content := range files {
			must.Write(t, filepath.Join(dir, path), content)
		}
	})
}

func (w world) change(t *testing.T, branch string, do func(dir string)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	w.git(t, "clone", "-q", "--branch", branch, w.repo.Dir, dir)
	do(dir)
	for _, args := range [][]string{{"add", "--all"}, {"-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--message=m"}, {"push", "-q", "origin", branch}} {
		w.git(t, append([]string{"-C", dir}, args...)...)
	}
}

// refused fails unless a setup is refused with words, and nothing is changed.
func (w world) refused(t *testing.T, s Setup, words string) {
	t.Helper()
	before := len(w.forge.Requests())
	must.Fail(t, words, must.Err(s.Apply(t.Context(), w.hub)))
	for _, sent := range w.forge.Requests()[before:] {
		must.Same(t, "GET", sent.Method, sent.Path, "is sent")
	}
}

const (
	openRouter = "version: 1\nmodel: {base_url: https://openrouter.ai/api/v1/, wire: chat}\n"
	passes     = "jobs: {a: {steps: [{uses: agent-ci/agent-ci@v0, with: {openai-api-key: '${{ secrets.%s }}'}}]}}\n"
)

func passing(secret string) string { return strings.Replace(passes, "%s", secret, 1) }

func TestSendsKeyToNoOtherProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, content, words string }{
		"defaults of OpenAI":        {".github/agent-ci.yml", "version: 1\n", "is for https://api.openai.com/v1 with the API responses and the secret OPENAI_API_KEY, not for https://openrouter.ai/api/v1"},
		"another wire":              {".github/agent-ci.yml", "version: 1\nmodel: {base_url: https://openrouter.ai/api/v1}\n", "the API responses"},
		"a variable of defaults":    {".github/agent-ci.yml", strings.Replace(openRouter, "chat", "chat, api_key_env: MINE", 1), "the secret MINE"},
		"broken defaults":           {".github/agent-ci.yml", "model: [", "read .github/agent-ci.yml, which is there"},
		"the workflow":              {".github/workflows/agent-ci-issue.yml", passing("OPENAI_API_KEY"), "passes the key ${{ secrets.OPENAI_API_KEY }}"},
		"the workflow, by variable": {".github/workflows/agent-ci-issue.yml", "env: {OPENAI_API_KEY: sk-clear}\n", "passes the key of another form"},
		"a workflow without a key":  {".github/workflows/agent-ci-issue.yml", "jobs: {}\n", "passes no openai-api-key"},
		"a workflow with an address": {
			".github/workflows/agent-ci-issue.yml", strings.Replace(passing("OPENROUTER_API_KEY"), "with: {", "with: {openai-base-url: https://elsewhere/v1, ", 1), "says itself where",
		},
		"another workflow":             {".github/workflows/mine.yaml", passing("OPENAI_API_KEY"), ".github/workflows/mine.yaml exists already and passes"},
		"a workflow of something else": {".github/workflows/mine.yaml", strings.ReplaceAll(passing("OPENAI_API_KEY"), "agent-ci", "other"), ""},
		"the workflow of a setup":      {".github/workflows/agent-ci-issue.yml", passing("OPENROUTER_API_KEY"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.push(t, "main", map[string]string{c.path: c.content})
			if c.words != "" {
				w.refused(t, w.setup(t), c.words)
				return
			}
			if report, err := w.setup(t).Apply(t.Context(), w.hub); err != nil || report.URL == "" {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// Defaults without an address change nothing for workflows that choose theirs.
func TestOpenAISetupAllowsOtherAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(t, "main", map[string]string{".github/workflows/mine.yml": strings.Replace(passing("MINE"), "with: {", "with: {openai-base-url: https://elsewhere/v1, ", 1)})
	s := w.setup(t)
	w.refused(t, s, "mine.yml exists already and passes the key ${{ secrets.MINE }}")
	s.Provider, _ = ProviderNamed("openai")
	if report, err := s.Apply(t.Context(), w.hub); err != nil || report.URL == "" {
		t.Errorf("%+v, %v", report, err)
	}
}

// Where the defaults name a variable, the workflow has the action's in its place.
func TestKeepsKeyVariableOfDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(t, "main", map[string]string{".github/agent-ci.yml": strings.Replace(openRouter, "chat", "chat, api_key_env: OPENROUTER_API_KEY", 1)})
	report, err := w.setup(t).Apply(t.Context(), w.hub)
	if err != nil || len(report.Left) != 1 || !strings.Contains(report.Left[0], "that file names none") {
		t.Fatalf("%+v, %v", report, err)
	}
	must.Contain(t, w.git(t, "show", "agent-ci-setup:.github/workflows/agent-ci-issue.yml"), "          set: model.api_key_env=OPENAI_API_KEY", "${{ secrets.OPENROUTER_API_KEY }}")
}

func TestAddressDecidesSecret(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": "OPENAI_API_KEY", "https://api.openai.com/v1/": "OPENAI_API_KEY", "https://openrouter.ai/api/v1": "OPENROUTER_API_KEY", "https://elsewhere/v1": "MODEL_API_KEY"} {
		p, _ := ProviderNamed("openai")
		must.Same(t, want, must.Get(p.WithBaseURL(address))(t).Secret, address)
		if p, _, err := parseDefaults([]byte("model: {base_url: '" + address + "'}")); err != nil || p.Secret != want {
			t.Errorf("%q of defaults: %s, %v", address, p.Secret, err)
		}
	}
	if _, _, err := parseDefaults([]byte("model: {api_key_env: 'A }}'}")); err == nil {
		t.Error("a variable's name that is none is taken")
	}
}

func TestReplacesSecretOnlyOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must.Do(t, w.hub.PutSecret(t.Context(), "OPENROUTER_API_KEY", "theirs"))
	s := w.setup(t)
	report, err := s.Apply(t.Context(), w.hub)
	if value, _ := w.repo.Secret("OPENROUTER_API_KEY"); err != nil || value != "theirs" || len(report.Left) != 1 || !strings.Contains(report.Left[0], "--replace-secret") {
		t.Errorf("%q, %+v, %v", value, report, err)
	}
	s.Replace = true
	report, err = s.Apply(t.Context(), w.hub)
	if value, _ := w.repo.Secret("OPENROUTER_API_KEY"); err != nil || value != s.Key || !strings.Contains(strings.Join(report.Done, "\n"), "the secret OPENROUTER_API_KEY is replaced") {
		t.Errorf("%q, %+v, %v", value, report, err)
	}
	w = newWorld(t)
	w.forge.On("GET", "/repos/octo/widgets/actions/secrets/OPENROUTER_API_KEY", forgetest.Reply{Status: 403, Body: `{"message": "Resource not accessible"}`}, 1)
	report, err = w.setup(t).Apply(t.Context(), w.hub)
	if _, set := w.repo.Secret("OPENROUTER_API_KEY"); err != nil || set || len(report.Left) != 1 {
		t.Errorf("not known whether it is there: %+v, %v", report, err)
	}
}

func TestRefusesSecondSetup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must.Get(w.setup(t).Apply(t.Context(), w.hub))(t)
	other := w.setup(t)
	other.Workflow = "comment"
	w.refused(t, other, "of another setup is open (it has no .github/workflows/agent-ci-comment.yml): merge it, or close it and delete its branch, first")
	other = w.setup(t)
	other.Model = "another"
	w.refused(t, other, "its model is qwen")
	other.Provider, _ = ProviderNamed("deepseek")
	w.refused(t, other, "close it and delete its branch")
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State = "closed" })
	w.refused(t, w.setup(t), "has a branch agent-ci-setup without an open pull request")
}

func TestRefusesLinkInPath(t *testing.T) {
	t.Parallel()
	for _, link := range []string{".github/workflows", ".github/agent-ci.yml", ".github"} {
		w := newWorld(t)
		w.change(t, "main", func(dir string) {
			must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755))
			must.Do(t, os.Symlink("../elsewhere", filepath.Join(dir, link)))
		})
		w.refused(t, w.setup(t), link)
	}
}

func TestEveryWorkflowTakesKeyVariable(t *testing.T) {
	t.Parallel()
	starters, _ := filepath.Glob("starter/*.yml")
	recipes, _ := filepath.Glob("recipes/*/workflow.yml")
	for _, file := range append(starters, recipes...) {
		raw := must.Get(os.ReadFile(file))(t)
		var parsed struct {
			Jobs map[string]struct {
				Steps []struct{ With map[string]string }
			}
		}
		must.Do(t, yaml.Unmarshal(Provider{Secret: "MINE", KeyEnv: "MINE"}.adaptWorkflow(raw), &parsed), file)
		for _, job := range parsed.Jobs {
			for _, step := range job.Steps {
				key, set := step.With["openai-api-key"], strings.Split(strings.TrimSpace(step.With["set"]), "\n")
				if key != "" && (key != "${{ secrets.MINE }}" || set[0] != "model.api_key_env=OPENAI_API_KEY") {
					t.Errorf("%s: the key is %s, set is %q", file, key, set)
				}
			}
		}
	}
}
