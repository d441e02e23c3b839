package gittest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"

	"golang.org/x/sys/unix"
)

// Overlay is an overlay mounted by a process in its own namespaces, with the options of a run's
// sandbox.
type Overlay struct {
	Lower []string    // the topmost first
	Upper string      // created, like the folder "work" beside it, which the kernel needs
	At    string      // mount point
	Binds [][2]string // pairs of a source, as it was before the mount, and the path to mount it over
}

const overlayVariable = "GITTEST_OVERLAY"

// Hold mounts the overlay until the test ends, and returns it as a repository. It skips the test if
// the system has no overlays.
func (o Overlay) Hold(t testing.TB) Repo {
	t.Helper()
	cmd := o.command(t)
	stdin, err := cmd.StdinPipe()
	must.Do(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	if err := cmd.Start(); err != nil {
		t.Skipf("no namespaces here: %v", err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Logf("the process that held an overlay: %v", err)
		}
		_ = os.Chmod(filepath.Join(o.work(), "work"), 0o700) // otherwise the test could not remove it
	})
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		_ = cmd.Wait()
		t.Skipf("no overlay here: %s", stderr.String())
	}
	holder := strconv.Itoa(cmd.Process.Pid)
	return Repo{
		T: t, Dir: filepath.Join("/proc", holder, "root", o.At),
		enter: []string{"nsenter", "--user", "--mount", "--preserve-credentials", "--target", holder, "env", "--chdir", o.At},
	}
}

// Run runs a program in the overlay and returns its output and error output.
func (o Overlay) Run(t testing.TB, argv ...string) string {
	t.Helper()
	cmd := o.command(t, argv...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == noOverlay || cmd.ProcessState == nil {
		t.Skipf("no overlay here: %v: %s", err, stderr.String())
	}
	must.Do(t, err, argv, stdout.String(), stderr.String())
	return stdout.String() + stderr.String()
}

// command returns this test program as a command that mounts the overlay in namespaces of its own
// and runs argv. Without argv, it holds the overlay until its standard input ends.
func (o Overlay) command(t testing.TB, argv ...string) *exec.Cmd {
	t.Helper()
	for _, dir := range []string{o.Upper, o.work(), o.At} {
		must.Do(t, os.MkdirAll(dir, 0o777))
	}
	spec := must.Get(json.Marshal(struct {
		Overlay
		Argv []string
	}{o, argv}))(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), overlayVariable+"="+string(spec))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SYS_ADMIN},
	}
	return cmd
}

func (o Overlay) work() string { return filepath.Join(filepath.Dir(o.Upper), "work") }

const noOverlay = 77 // exit status of a process that could not mount the overlay

// inOverlay mounts the overlay and runs the program, in a process that Overlay.command started. In
// any other process it returns.
func inOverlay() {
	raw := os.Getenv(overlayVariable)
	if raw == "" {
		return
	}
	var spec struct {
		Overlay
		Argv []string
	}
	err := json.Unmarshal([]byte(raw), &spec)
	if err == nil {
		err = spec.mount()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(noOverlay)
	}
	if len(spec.Argv) == 0 {
		fmt.Print(".")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	path, err := exec.LookPath(spec.Argv[0])
	if err == nil {
		err = syscall.Exec(path, spec.Argv, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// mount mounts the overlay and the binds, and changes into the overlay.
func (o Overlay) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	var from []int
	for _, bind := range o.Binds {
		fd, err := unix.Open(bind[0], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", bind[0], err)
		}
		from = append(from, fd)
	}
	options := fmt.Sprintf("userxattr,index=off,lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(o.Lower, ":"), o.Upper, o.work())
	if err := unix.Mount("overlay", o.At, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount an overlay with %s: %w", options, err)
	}
	for i, bind := range o.Binds {
		if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(from[i]), bind[1], "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s over %s: %w", bind[0], bind[1], err)
		}
	}
	return os.Chdir(o.At)
}
