package dynamic_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dynamic"
)

// examples are the programs of docs/reference/tools.md: a script, and the same in Python.
func examples(t *testing.T) (script, python string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/reference/tools.md")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.Mkdir(filepath.Join(dir, "incidents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"incidents/old.tsv": "shop\t2025\tslow\nshop.eu\t2025\tdown\nshopping\t2025\tdown\n", "incidents/new.tsv": "shop\t2026\tdown\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(argv ...string) dynamic.Program {
		p := program(t, "", "AGENT_CI_BASE_TREE="+dir)
		p.Argv = argv
		return p
	}
}

func TestTheExamplesOfTheDocumentRun(t *testing.T) {
	t.Parallel()
	script, python := examples(t)
	start := inBase(t)
	for what, p := range map[string]dynamic.Program{"script": start("bash", "-e", "-c", script), "Python": start("python3", "-c", python)} {
		outputs := new(tools.Outputs)
		got := dispatch(t, outputs, dynamic.Run(spec, p, time.Hour, outputs), `{"service":"shop"}`, `{"service":"sho."}`)
		if got[0].Output != "shop\t2026\tdown\nshop\t2025\tslow\n" || got[0].Failed {
			t.Errorf("%s: got %+v", what, got[0])
		}
		if want := "lookup ended with exit status 1. On its standard error:\nthere is no service sho.\n"; got[1].Output != want || !got[1].Failed {
			t.Errorf("%s: got %+v", what, got[1])
		}
	}
}
