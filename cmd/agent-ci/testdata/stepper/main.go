// Command stepper becomes another program, stepper PROGRAM ARGUMENT..., whose tracer is told of system calls
// that may change a file, and of no others.
package main

import (
	"fmt"
	"os"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

func main() {
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{{
			Action: seccomp.ActionTrace,
			Names: []string{
				"rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat",
				"linkat", "symlink", "symlinkat", "write", "pwrite64", "copy_file_range",
			},
			NamesWithCondtions: []seccomp.NameWithConditions{{
				Name: "openat", Conditions: seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.BitsSet, Value: unix.O_CREAT | unix.O_TRUNC}},
			}},
		}},
	}})
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "stepper:", err)
	os.Exit(1)
}
