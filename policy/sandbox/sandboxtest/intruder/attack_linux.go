package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
)

// attack runs the attempts that a tier must withstand and reports successes: attack WORLD TIER.
// Without confinement it runs every seventh of the harmless ones, which is enough to see that it reports
// them: the tests of package sandbox run all.
func attack(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: attack WORLD TIER")
	}
	w, err := readWorld(args[0])
	if err != nil {
		return err
	}
	tier, dir := args[1], w.Workspace
	before, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) { // it is the checkout, and commands work in a copy
		dir = "."
		before, err = os.ReadDir(dir)
	}
	if err != nil {
		return err
	}
	if err := leaveBehind(filepath.Dir(args[0])); err != nil {
		return err
	}
	_, err = os.Stat(w.Hidden()[0])
	hides := err == nil // a check's tree has nothing of it
	tried := 0
	for i, a := range attempts.On(w) {
		isSample := !a.Unproven && i%7 == 0
		isLeftOut := tier == "none" && !isSample
		hasNoTarget := a.Hidden && !hides
		if isLeftOut || hasNoTarget || a.Open[tier] == attempts.CheckedAfterwards {
			continue
		}
		v, err := try(args[0], a)
		if err != nil {
			return err
		}
		tried++
		if v.Escaped && a.Open[tier] == "" {
			fmt.Printf("ESCAPED %s: %s\n", v.Name, strings.ReplaceAll(v.Why, "\n", " "))
		}
	}
	fmt.Printf("tried %d attempts\n", tried)
	return tidy(dir, before)
}

// tidy removes new files from a folder for the next attack.
func tidy(dir string, before []os.DirEntry) error {
	after, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range after {
		known := func(e os.DirEntry) bool { return e.Name() == entry.Name() }
		if !slices.ContainsFunc(before, known) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// try runs an attempt in its own process, again if it hit itself.
func try(world string, a attempts.Attempt) (attempts.Verdict, error) {
	for range 5 {
		cmd := exec.Command("/proc/self/exe", "attempt", world, a.Name)
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			return attempts.Verdict{}, err
		}
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		ended := ""
		if status.Signaled() {
			ended = status.Signal().String()
		}
		if v, mistaken := attempts.Judge(a.Name, status.ExitStatus(), ended, output.String()); !mistaken {
			return v, nil
		}
	}
	return attempts.Verdict{}, fmt.Errorf("%s: the victim's number is one inside", a.Name)
}

// attempt makes one attempt: attempt WORLD NAME.
func attempt(args []string) error {
	w, err := readWorld(args[0])
	if err != nil {
		return err
	}
	if w.Supervisor, err = supervisor(w); err != nil {
		return err
	}
	all := attempts.All()
	i := slices.IndexFunc(all, func(a attempts.Attempt) bool { return a.Name == args[1] })
	if i < 0 {
		return fmt.Errorf("there is no attempt %q", args[1])
	}
	all[i].Make(w)
	return nil
}

// supervisor returns the namespace's first process, or without one agent-ci's child.
func supervisor(w attempts.World) (int, error) {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || own != w.Namespace {
		return 1, err
	}
	pid := os.Getpid()
	for pid > 1 {
		parent, err := parentOf(pid)
		if err != nil {
			return 0, err
		}
		if parent == w.Victim {
			return pid, nil
		}
		pid = parent
	}
	return 0, errors.New("agent-ci is no ancestor")
}

// parentOf returns the pid of a process's parent.
func parentOf(pid int) (parent int, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	behindName := raw[bytes.LastIndexByte(raw, ')')+1:]
	var state string
	_, err = fmt.Sscan(string(behindName), &state, &parent)
	return parent, err
}

// leaveBehind starts an identifiable process that outlives the command: it is in its own session, and
// its parents exit.
func leaveBehind(mark string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return exec.Command("/bin/sh", "-c", `setsid "$0" linger "$1" </dev/null >/dev/null 2>&1 &`, self, mark).Run()
}

// linger ignores the usual signals and sleeps for 10 minutes.
func linger([]string) error {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	time.Sleep(10 * time.Minute)
	return nil
}
