package stage

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
)

// signalVariable makes the test binary the first process of a pid namespace, which
// gets this signal from within while its main thread blocks all.
const signalVariable = "STAGE_TEST_SIGNAL"

func TestMain(m *testing.M) {
	if os.Getenv(signalVariable) != "" {
		signalSelf()
	}
	os.Exit(m.Run())
}

func signalSelf() {
	runtime.LockOSThread() // the main thread, to which the kernel offers a signal first
	<-surviveSignals()
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i]--
	}
	var number unix.Signal
	if _, err := fmt.Sscan(os.Getenv(signalVariable), &number); err != nil || unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil) != nil {
		os.Exit(2)
	}
	_ = unix.Kill(os.Getpid(), number)
	os.Exit(0)
}

// Around fork Go blocks all signals on the thread that forks, which is when
// a command that has just been started may send one.
func TestFirstProcessSurvivesSignalsWhileForking(t *testing.T) {
	self := must.Get(os.Executable())(t)
	for number := 1; number <= 64; number++ {
		cmd := exec.Command(self)
		cmd.Env = []string{fmt.Sprintf("%s=%d", signalVariable, number)}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID}
		err := cmd.Start()
		if err != nil {
			t.Skipf("no namespaces here: %v", err)
		}
		must.Is(t, nil, cmd.Wait(), "signal", number)
	}
}
