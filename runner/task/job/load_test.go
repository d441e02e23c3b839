package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/config/schematest"
)

// mustLoad is the job of layers, which have no mistakes.
func mustLoad(t *testing.T, layers ...config.Layer) *Job {
	t.Helper()
	job, err := Load(layers...)
	must.Do(t, err, "Load")
	return job
}

func TestDefaultsAreNotShared(t *testing.T) {
	mustLoad(t, jobFile(start)).Policy.Protect[0] = "changed"
	must.Same(t, ".github/**", mustLoad(t, jobFile(start)).Policy.Protect[0], "a job that was changed changed the defaults")
}

func TestLayersMergeMappingsAndReplaceLists(t *testing.T) {
	lower := config.Layer{Name: "agent-ci.yml", Kind: config.DefaultsLayer, Data: []byte(`version: 1
model: {headers: {A: lower, B: lower}}
tools: {deny: [a, b]}
verify: [{name: slow, run: x, timeout: 1h, must: no_worse}]
policy: {env: {set: {V: lower}}}
`)}
	higher := jobFile(start + `
model: {headers: {B: higher, C: null}}
tools: {deny: [c]}
verify: [{run: y}]
policy: {env: {set: }}
`)
	got := mustLoad(t, lower, higher, config.SetLayer("model.headers.X-Dot.ted=set", "policy.env.set.W=", "policy.env.set.N=5"))
	want := mustLoad(t, jobFile(start+`
model: {headers: {A: lower, B: higher, X-Dot.ted: set}}
tools: {deny: [c]}
verify: [{name: y, run: y, timeout: 10m, must: pass}]
policy: {env: {set: {V: lower, W: "", N: "5"}}}
`))
	must.Same(t, want, got, "job")
}

func TestHigherLayerReplacesTaskSource(t *testing.T) {
	file := jobFile("version: 1\ntask: {title: t, issue: 7}\n")
	flags := config.Layer{Kind: config.ValuesLayer, Values: []config.Assignment{{Key: "task.prompt", Value: "do: it", Origin: "--prompt"}}}
	got := mustLoad(t, file, flags).Task
	want := Task{Title: "t", Prompt: "do: it", Images: []string{}, Attachments: "images", Expects: "change", Questions: "assume"}
	must.Same(t, want, got, "task")
}

func TestOnlyTemplateLoadsWithoutTask(t *testing.T) {
	must.Do(t, must.Err(LoadTemplate(jobFile("version: 1\n"))), "LoadTemplate")
	must.Same(t, []string{"task: is missing; give one of task.prompt, task.prompt_file and task.issue"}, problemLines(t), "problems of no layer")
}

func TestGoodFilesLoadFitSchemaAndSurviveJSON(t *testing.T) {
	schema := schematest.Compile(t, Format().Schema())
	for name, data := range goodFiles(t) {
		t.Run(name, func(t *testing.T) {
			must.Do(t, schema.Validate(t, string(data)))
			job := mustLoad(t, config.Layer{Name: name, Data: data})
			written := must.Get(json.Marshal(job))(t)
			var read Job
			must.Do(t, json.Unmarshal(written, &read))
			must.Same(t, job, &read, "job after JSON (-before +after)")
		})
	}
}

func goodFiles(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/good/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in testdata/good: %v", err)
	}
	files := make(map[string][]byte, len(paths))
	for _, path := range paths {
		data := must.Get(os.ReadFile(path))(t)
		files[filepath.Base(path)] = data
	}
	return files
}

func TestEncodesEffectiveJobAsJSON(t *testing.T) {
	job := mustLoad(t, config.Layer{Name: "every_key.yml", Data: goodFiles(t)["every_key.yml"]})
	written := must.Get(json.Marshal(job))(t)
	var keys map[string]json.RawMessage
	must.Do(t, json.Unmarshal(written, &keys))
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&lines, "%s: %s\n", key, keys[key])
	}
	golden.Compare(t, "testdata/every_key.json.txt", lines.String())
}

func TestDerivesKeyFromTask(t *testing.T) {
	for _, c := range []struct {
		name string
		job  Job
		want string
	}{
		{"name", Job{Name: "fix-lint", Task: Task{Issue: "7"}}, "fix-lint"},
		{"issue", Job{Task: Task{Issue: "octo/demo#7"}}, "issue-7"},
		{"issue of this repository", Job{Task: Task{Issue: "#12"}}, "issue-12"},
		{"prompt", Job{}, "prompt-2d711642"}, // printf x | sha256sum
	} {
		must.Same(t, c.want, c.job.Key("x"), c.name)
	}
}

func TestProtectsSkillFoldersUnderAnyList(t *testing.T) {
	j := mustLoad(t, jobFile(start+"policy: {protect: [CODEOWNERS, '!**/.claude/**']}\nskills: {folders: [.agents/skills, .claude/skills, AGENTS.md-skills, 'docs/*/skills', team]}\n"))
	want := slices.DeleteFunc(defaultProtectedPatterns(), func(pattern string) bool { return pattern == "**/.claude/**" })
	want = append(want, ".claude/skills/**", "AGENTS.md-skills/**", `docs/\*/skills/**`, "team/**")
	must.Same(t, want, j.Policy.Protect, "the result")
	for _, path := range []string{".agents", ".agents/skills/a/SKILL.md", "docs/*/skills/a", "team/b/c", ".agent-ci/lessons.yml", ".Claude/skills/a/SKILL.md"} {
		if protected, err := policy.Protected(j.Policy.Protect, path); err != nil || !protected {
			t.Errorf("%s is not protected (%v)", path, err)
		}
	}
	for _, path := range []string{"docs/x/skills/a", ".claude/settings.json"} {
		if protected, err := policy.Protected(j.Policy.Protect, path); err != nil || protected {
			t.Errorf("%s, which no skills are in, is protected (%v)", path, err)
		}
	}
}
