package verify

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// home is that of the user, whose build cache has Go's tool. TestMain sets another one.
var home = os.Getenv("HOME")

func TestReadsGoBuildID(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "buildid", path)
	cmd.Env = append(os.Environ(), "HOME="+home)
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := programID()
	if err != nil || got == "" || got != strings.TrimSpace(string(want)) {
		t.Errorf("the build ID is %q, %v, want %q", got, err, want)
	}
}

func TestHashesProgramWithoutBuildID(t *testing.T) {
	for _, program := range []string{"", "\x04\x00\x00\x00Go\x00\x00", "#!/bin/sh\n"} {
		if got := buildID(strings.NewReader(program)); got != "" {
			t.Errorf("the build ID of %q is %q", program, got)
		}
	}
}
