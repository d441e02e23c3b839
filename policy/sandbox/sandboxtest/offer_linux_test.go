package sandboxtest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// A kernel before 5.12, and what stands in for one, has namespaces without what
// the sandbox mounts by.
func TestNamespacesRequireMountAttributes(t *testing.T) {
	const inside = "SANDBOXTEST_INSIDE"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls:      []seccomp.SyscallGroup{{Names: []string{"mount_setattr"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}},
	}})
	if err != nil {
		t.Skip(err)
	}
	for _, level := range []string{"full", "namespaces"} {
		must.Same(t, false, offered(level), level, "is offered")
	}
}
