package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestCloseEndsDetachedProcesses(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid(1)")
	}
	h := watch(t)
	box := &Sandbox{AdoptOrphans: true}
	status, err := box.Run(t.Context(), script(t, "exec 3>"+h.path+"; setsid sh -c 'echo >up; sleep 3600' >/dev/null 2>&1 & while ! test -e up; do :; done", nil))
	if err != nil || status.ExitCode != 0 {
		t.Fatalf("got %+v, %v", status, err)
	}
	select {
	case <-h.gone:
		t.Error("the process that left the group ended with the command; there is nothing for Close to do")
	default:
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	h.mustGo(t)
}

func TestCommandsDieWithAgentCI(t *testing.T) {
	h := watch(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), holdVariable+"=exec 3>"+h.path+"; echo up; exec sleep 3600")
	output := must.Get(parent.StdoutPipe())(t)
	must.Do(t, parent.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || line != "up\n" {
		t.Errorf("got %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
	h.mustGo(t)
}
