package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

// mostForDeferred is how many bytes tools that have to be looked for may add to a request,
// however many they are.
const mostForDeferred = 1 << 10

// TestDeferredToolsAddLittleToRequest compares the first request of a run that has 500 tools
// of its own with that of one that has none.
func TestDeferredToolsAddLittleToRequest(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"gpt-5.1-codex", "gpt-5.4", "qwen3-coder"} {
		none := firstRequest(t, model, nil)
		for name, tools := range map[string][]string{"500 tools": manyTools(500, ""), "5 deferred tools": manyTools(5, ", defer: true")} {
			with := firstRequest(t, model, tools)
			must.Same(t, false, strings.Contains(with, "find_thing_number_4"), model, "the first request tells of one of", name)
			must.Same(t, true, strings.Contains(with, fmt.Sprintf("There are %d, of: this job (%[1]d).", len(tools))), model, "the first request does not say that there are", name)
			more := len(with) - len(none)
			t.Logf("%s: %s add %d bytes to a request of %d", model, name, more, len(none))
			if more > mostForDeferred {
				t.Errorf("%s: %s add %d bytes to a request, more than %d", model, name, more, mostForDeferred)
			}
		}
	}
}

func manyTools(n int, more string) (tools []string) {
	for i := range n {
		tools = append(tools, fmt.Sprintf(
			"{name: find_thing_number_%d, description: %s, input_schema: {type: object, properties: {place: {type: string, description: Where to look.}}}, run: 'true'%s}",
			i, strings.Repeat("Finds a thing in its place. ", 10), more))
	}
	return tools
}

// firstRequest is the body of the first request of a run, in a folder that is always the same.
func firstRequest(t *testing.T, modelName string, tools []string) string {
	t.Helper()
	server := must.Get(modeltest.StartScript("session.yml", strings.NewReader("version: 1\nturns: [{output: [{say: Nothing.}]}, {output: [{say: Nothing.}]}]\n"), modeltest.Options{}))(t)
	defer server.Close()
	job := filepath.Join(t.TempDir(), "job.yml")
	must.Write(t, job, "version: 1\ntask: {prompt: Play.}\ntools: {dynamic: ["+strings.Join(tools, ", ")+"]}\n")
	cmd := scriptedRun(t, server.BaseURL(), widgets(t), filepath.Join(t.TempDir(), "out"), job, "--model", modelName)
	cmd.Env = append(cmd.Env, openly)
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	must.None(t, server.Faults(), "the model's server found")
	return string(server.Requests()[0].Body)
}
