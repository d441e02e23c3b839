package dynamic_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/dynamic"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// examples are the programs of docs/reference/tools.md: a script, and the same in Python.
func examples(t *testing.T) (script, python string) {
	t.Helper()
	raw := must.Get(os.ReadFile("../../docs/reference/tools.md"))(t)
	run := regexp.MustCompile(`(?s)      run: \|\n(.*?)\n      timeout`).FindStringSubmatch(string(raw))
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	if run == nil || len(blocks) != 1 {
		t.Fatalf("docs/reference/tools.md has %d programs in Python", len(blocks))
	}
	return strings.ReplaceAll(run[1], "\n        ", "\n"), blocks[0][1]
}

// inBase writes files into a tree of the base, and gives what starts programs with it.
func inBase(t *testing.T) func(argv ...string) dynamic.Program {
	t.Helper()
	for _, needed := range []string{"python3", "jq", "bash", "awk"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip("the examples need " + needed)
		}
	}
	dir := t.TempDir()
	toolstest.Write(t, dir, map[string]string{
		"incidents/old.tsv": "shop\t2025\tslow\nshop.eu\t2025\tdown\nshopping\t2025\tdown\n", "incidents/new.tsv": "shop\t2026\tdown\n",
	})
	return func(argv ...string) dynamic.Program {
		p := program(t, "", "AGENT_CI_BASE_TREE="+dir)
		p.Argv = argv
		return p
	}
}

func TestDocumentedExamplesRun(t *testing.T) {
	t.Parallel()
	script, python := examples(t)
	start := inBase(t)
	for what, p := range map[string]dynamic.Program{"script": start("bash", "-e", "-c", script), "Python": start("python3", "-c", python)} {
		if got := lookup(t, p, time.Hour, `{"service":"shop"}`); got.Output != "shop\t2026\tdown\nshop\t2025\tslow\n" || got.Failed {
			t.Errorf("%s: got %+v", what, got)
		}
		got := lookup(t, p, time.Hour, `{"service":"sho."}`)
		if want := "lookup ended with exit status 1. On its standard error:\nthere is no service sho.\n"; got.Output != want || !got.Failed {
			t.Errorf("%s: got %+v", what, got)
		}
	}
}
