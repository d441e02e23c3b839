package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
)

// without lists the calls unknown to a kernel without a layer, by tier. agent-ci detects that by
// trying.
var without = map[string]string{
	"landlock":   "mount_setattr",
	"namespaces": "landlock_create_ruleset",
}

// host creates the world in a file and runs a program with only a tier's layers: host WORLD TIER
// PROGRAM ARGUMENT…
func host(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: host WORLD TIER PROGRAM ARGUMENT…")
	}
	w, err := readWorld(args[0])
	if err != nil {
		return err
	}
	stop, err := w.Inhabit()
	if err != nil {
		return fmt.Errorf("inhabit the world: %w", err)
	}
	defer stop()
	if err := forget(without[args[1]]); err != nil {
		return err
	}
	return runHeld(args[2:], func(pid int) error {
		return errors.Join(w.SetVictim(pid), writeWorld(args[0], w))
	})
}

// runHeld runs a program after begin has received its number.
func runHeld(argv []string, begin func(pid int) error) error {
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read -r _ && exec "$@" </dev/null`, "sh"}, argv...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = begin(cmd.Process.Pid)
	if err == nil {
		_, err = fmt.Fprintln(hold)
	}
	return errors.Join(err, hold.Close(), cmd.Wait())
}

// forget makes a system call unknown to this process and its children.
func forget(call string) error {
	if call == "" {
		return nil
	}
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls:      []seccomp.SyscallGroup{{Names: []string{call}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}},
	}})
}

func readWorld(path string) (w attempts.World, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return w, err
	}
	return w, json.Unmarshal(raw, &w)
}

func writeWorld(path string, w attempts.World) error {
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}
