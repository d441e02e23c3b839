package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// enter confines the process and serves commands. It exits the process and does not return.
func enter() {
	runtime.LockOSThread() // commands inherit this thread's Landlock domain, and die with it
	if err := run(&conn{fd: ControlFD}); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		os.Exit(126)
	}
	os.Exit(0)
}

func run(c *conn) error {
	safe := surviveSignals()
	setids, err := build(c)
	if err != nil {
		return err
	}
	<-safe
	return serveCommands(c, setids)
}

// stepError reports a step of the confinement that failed.
type stepError struct {
	step string
	err  error
}

func (f *stepError) Error() string { return f.step + ": " + f.err.Error() }
func (f *stepError) Unwrap() error { return f.err }

func at(step string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{step, err}
}

// build receives the spec, confines the process, and sends the report. After a failure it also returns
// the error.
func build(c *conn) (setids, error) {
	// Commands must not inherit the control socket and further descriptors. Linux before 5.11 lacks this.
	if err := unix.CloseRange(ControlFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return setids{}, err
	}
	body, given, err := c.receive()
	for _, fd := range given {
		defer unix.Close(fd)
	}
	if err != nil {
		return setids{}, err
	}
	var s Spec
	if err := json.Unmarshal(body, &s); err != nil {
		return setids{}, err
	}
	report := Report{}
	watcher, lent, err := confine(s, given, &report)
	var handed []int
	if err == nil {
		handed, err = open(s)
	}
	handed = append(handed, lent...)
	for _, fd := range handed {
		defer unix.Close(fd) // the report has sent it to the process outside
	}
	if err != nil {
		report.setFailure(err)
		return watcher, errors.Join(err, c.send(report))
	}
	return watcher, c.send(report, handed...)
}

// open opens the listeners and the shown folder for the process outside. It runs after confine, so they
// have only the rights of commands.
func open(s Spec) (handed []int, err error) {
	for _, port := range s.Ports {
		listener, err := listen(port)
		if err != nil {
			return handed, at(fmt.Sprintf("listen at port %d", port), err)
		}
		handed = append(handed, listener)
	}
	if s.Shown != "" {
		folder, err := unix.Open(s.Shown, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return handed, at("open "+s.Shown, err)
		}
		handed = append(handed, folder)
	}
	return handed, nil
}

// setFailure records the failed step, its error and the kernel's error number.
func (r *Report) setFailure(err error) {
	r.Failed, r.Error = "start", err.Error()
	if f := (*stepError)(nil); errors.As(err, &f) {
		r.Failed, r.Error = f.step, f.err.Error()
	}
	if number := unix.Errno(0); errors.As(err, &number) {
		r.Errno = uint(number)
	}
}

// confine confines the process. The order of the steps matters: each needs rights that later ones drop.
// All threads of the process drop them, so that no thread is useful to commands.
func confine(s Spec, given []int, report *Report) (watcher setids, lent []int, err error) {
	if s.Namespaced {
		if lent, err = buildNamespaces(s, given, report); err != nil {
			return watcher, lent, err
		}
	}
	if err := at("set limits", limit(s)); err != nil {
		return watcher, lent, err
	}
	if err := at("drop capabilities", dropCapabilities()); err != nil {
		return watcher, lent, err
	}
	if err := at("set no_new_privs", onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)); err != nil {
		return watcher, lent, err
	}
	if s.Landlock != nil {
		if err := at("landlock", restrict(*s.Landlock)); err != nil {
			return watcher, lent, err
		}
	}
	for _, filter := range s.Filters.All {
		if err := at("seccomp", install(filter)); err != nil {
			return watcher, lent, err
		}
	}
	watcher, err = watchSetids(s.Filters)
	return watcher, lent, at("seccomp", err)
}

// backlog is the number of connections that may wait for their acceptance.
const backlog = 128

// listen opens a listener at a port of 127.0.0.1 in this network namespace.
func listen(port int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
