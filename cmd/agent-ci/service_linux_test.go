package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// TestDatabasesAsServices has PostgreSQL and Redis of Debian as services, in the two ways to work.
func TestDatabasesAsServices(t *testing.T) {
	t.Parallel()
	if !everything() {
		t.Skip("databases are run in make e2e only (AGENT_CI_E2E=1)")
	}
	if confines() != sandbox.LevelFull {
		t.Skip("needs confinement with all layers")
	}
	postgres, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	_, err := exec.LookPath("redis-server")
	if len(postgres) == 0 || err != nil {
		t.Skip("needs Debian's postgresql and redis-server")
	}
	newest := filepath.Dir(postgres[len(postgres)-1])
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "services"), Cmds: scriptCommands(),
		Setup: func(env *testscript.Env) error {
			err := setUp(t, env)
			env.Setenv("PATH", newest+string(os.PathListSeparator)+env.Getenv("PATH"))
			return err
		},
	})
}

// TestServicesEndWithKilledRun kills a run whose service has a pipe open, and waits for
// the pipe to have no reader.
func TestServicesEndWithKilledRun(t *testing.T) {
	t.Parallel()
	if confines() != sandbox.LevelFull {
		t.Skip("needs confinement with all layers")
	}
	keeper := must.Get(helper("keeper"))(t)
	seen := sandboxtest.Place(t, sandbox.RemoveScratch) // /tmp is not what it is to services
	pipe, program := filepath.Join(seen, "pipe"), filepath.Join(seen, "keeper")
	must.Do(t, errors.Join(os.WriteFile(program, []byte(read(t, keeper)), 0o755), unix.Mkfifo(pipe, 0o644)))
	run := runWithService(t, "exec 9<"+pipe+"; exec "+program+" serve")
	must.Do(t, run.Start())
	service, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
	must.Do(t, err)
	defer service.Close()
	must.Same(t, false, gone(t, service, 0), "nobody reads the pipe before the run is killed")
	must.Is(t, nil, run.Process.Kill())
	_ = run.Wait() // it was killed
	must.Same(t, true, gone(t, service, -1), "the service is there")
}

// runWithService is a run whose check does not end, with a service.
func runWithService(t *testing.T, service string) *exec.Cmd {
	t.Helper()
	w := newWorkshop(t)
	w.prepare()
	w.write("job.yml", "version: 1\ntask: {prompt: x}\nservices: {words: {run: "+service+", port: 7000}}\nverify: [{name: check, run: sleep 3600, timeout: 2h}]\n")
	w.write("session.yml", "version: 1\nturns: [{output: [{say: Done.}]}]\n")
	run, _ := w.command(prepared...)
	return run
}

// gone says whether a pipe has no reader within so many milliseconds; -1 waits for it.
func gone(t *testing.T, pipe *os.File, wait int) bool {
	t.Helper()
	for {
		fds := []unix.PollFd{{Fd: int32(pipe.Fd())}}
		_, err := unix.Poll(fds, wait)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		must.Do(t, err)
		return fds[0].Revents&unix.POLLERR != 0
	}
}
