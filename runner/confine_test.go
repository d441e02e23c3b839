package runner

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
)

func TestSandboxesAreHeldToTheLevelOnRecord(t *testing.T) {
	dir, err := record.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{rec: recordIn(dir), job: &job.Job{}}
	r.job.Policy.Require = string(sandbox.LevelLandlock)
	at := place{scratch: agentScratch, root: t.TempDir(), network: job.Network{Mode: "none"}}
	if o := r.sandboxOptions(at); o.At != "" || o.Require != sandbox.LevelLandlock {
		t.Errorf("before anything was tried, at %q and requiring %q", o.At, o.Require)
	}
	r.confined = record.Confinement{Level: string(sandbox.LevelFull)}
	if o := r.sandboxOptions(at); o.At != sandbox.LevelFull {
		t.Errorf("after full was reached, at %q", o.At)
	}
}
