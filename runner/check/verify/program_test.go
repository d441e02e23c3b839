package verify

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// home is that of the user, whose build cache has Go's tool. TestMain sets another one.
var home = os.Getenv("HOME")

func TestReadsGoBuildID(t *testing.T) {
	path := must.Get(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), "go", "tool", "buildid", path)
	cmd.Env = append(os.Environ(), "HOME="+home)
	want := must.Get(cmd.Output())(t)
	got, err := programID()
	if err != nil || got == "" || got != strings.TrimSpace(string(want)) {
		t.Errorf("the build ID is %q, %v, want %q", got, err, want)
	}
}

func TestHashesProgramWithoutBuildID(t *testing.T) {
	for _, program := range []string{"", "\x04\x00\x00\x00Go\x00\x00", "#!/bin/sh\n"} {
		must.Same(t, "", buildID(strings.NewReader(program)), program)
	}
}
