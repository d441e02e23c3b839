package code_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/tools"
)

func confined(t *testing.T, level sandbox.Level) *sandbox.Sandbox {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	o := sandbox.Options{Network: sandbox.NetworkNone, Require: level, Folders: grants.Folders{
		Mode: grants.WorkspaceWrite, Workspace: filepath.Join(base, "workspace"), Scratch: filepath.Join(base, "scratch"),
		Home: os.Getenv("HOME"), Environ: os.Environ(), Readable: []string{filepath.Dir(self)},
	}}
	if err := os.Mkdir(o.Workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.RemoveScratch(o.Scratch); err != nil {
			t.Error(err)
		}
	})
	box, err := sandbox.Open(t.Context(), o)
	if _, is := errors.AsType[*sandbox.UnavailableError](err); is {
		sandboxtest.SkipUnlessOffered(t, string(level), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestScriptsRunInSandbox(t *testing.T) {
	r := start(t, confined(t, sandbox.LevelFull), new(tools.Outputs))
	r.Warm()
	for _, test := range []struct{ script, want string }{
		{`text((await tools.echo({say: "inside"})).say); store("a", 1)`, head("completed") + "\ninside"},
		{`text(load("a"))`, head("completed") + "\n1"},
		{`const a = []; for (;;) a.push(new ArrayBuffer(1 << 24))`, head("failed") + "\nScript error:\nRangeError: out of memory: a script has 256 MiB"},
		{`yield_control(); await tools.hang()`, head("running with cell ID 4")},
	} {
		if got := said(r.call(t.Context(), "exec", test.script)); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %s", test.script, got)
		}
	}
}
