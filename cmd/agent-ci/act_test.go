package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestActionRunsInAct runs action.yml as it stands here by act, with the machine itself for a
// runner. It is part of make e2e: act is a large program to build.
func TestActionRunsInAct(t *testing.T) {
	t.Parallel()
	if os.Getenv("AGENT_CI_E2E") == "" {
		t.Skip("the action is run by act in make e2e only (AGENT_CI_E2E=1)")
	}
	root := must.Get(filepath.Abs("../.."))(t)
	list := exec.Command("go", "tool", "-modfile=.ci/tools.mod", "-n", "act")
	list.Dir, list.Stderr = root, os.Stderr
	act, err := list.Output()
	must.Do(t, err, "build act")
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "act"), Cmds: scriptCommands(),
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
				value, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				env.Setenv(name, strings.TrimSpace(string(value)))
			}
			env.Setenv("ACT", strings.TrimSpace(string(act)))
			env.Setenv("ACTION", root)
			return setUp(t, env)
		},
	})
}
