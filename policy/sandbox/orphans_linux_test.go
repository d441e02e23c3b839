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
	must.Same(t, 0, must.Get(box.Run(t.Context(), script(t, "exec 3>"+h.path+"; setsid sh -c 'echo >up; sleep 3600' >/dev/null 2>&1 & while ! test -e up; do :; done", nil)))(t).ExitCode)
	select {
	case <-h.gone:
		t.Error("the process that left the group ended with the command; there is nothing for Close to do")
	default:
	}
	must.Is(t, nil, box.Close())
	h.mustGo(t)
}

func TestCommandsDieWithAgentCI(t *testing.T) {
	h := watch(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), holdVariable+"=exec 3>"+h.path+"; echo up; exec sleep 3600")
	output := must.Get(parent.StdoutPipe())(t)
	must.Do(t, parent.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must.Same(t, "up\n", line, err)
	must.Is(t, nil, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	h.mustGo(t)
}
