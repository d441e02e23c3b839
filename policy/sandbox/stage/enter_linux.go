package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// enter confines the process and serves commands. It exits the process and does not return. Only an init
// function may call it, because Go runs those on the first thread: commands inherit this thread's Landlock
// domain, and die with it. runtime.LockOSThread would start one more thread to drop the rights of.
//
// It exits by package syscall: under the race detector, os.Exit would first sleep for a second.
func enter() {
	if err := confineAndServe(new(conn)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		syscall.Exit(126)
	}
	syscall.Exit(0)
}

func confineAndServe(c *conn) error {
	signalsHandled := surviveSignals()
	watcher, err := confineBySpec(c)
	if err != nil {
		return err
	}
	<-signalsHandled
	return serveCommands(c, watcher)
}

// stepError reports a step of the confinement that failed.
type stepError struct {
	step string
	err  error
}

func (failure *stepError) Error() string { return failure.step + ": " + failure.err.Error() }
func (failure *stepError) Unwrap() error { return failure.err }

func wrapStep(step string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{step, err}
}

// confineBySpec receives the spec, confines the process, and sends the report. After a failure it also returns
// the error.
func confineBySpec(c *conn) (setidWatcher, error) {
	// Commands must not inherit the control socket and further descriptors. Linux before 5.11 lacks this.
	if err := unix.CloseRange(ControlFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return setidWatcher{}, err
	}
	body, received, err := c.receive()
	for _, fd := range received {
		defer unix.Close(fd)
	}
	if err != nil {
		return setidWatcher{}, err
	}
	var spec Spec
	if err := json.Unmarshal(body, &spec); err != nil {
		return setidWatcher{}, err
	}
	report := Report{}
	watcher, lent, err := confine(spec, received, &report)
	var handed []int
	if err == nil {
		handed, err = openHandedFiles(spec)
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

// openHandedFiles opens the listeners and the shared folder for the process outside. It runs after confine, so they
// have only the rights of commands.
func openHandedFiles(spec Spec) (handed []int, err error) {
	for _, port := range spec.Ports {
		listener, err := listen(port)
		if err != nil {
			return handed, wrapStep(fmt.Sprintf("listen at port %d", port), err)
		}
		handed = append(handed, listener)
	}
	if spec.SharedFolder != "" {
		folder, err := unix.Open(spec.SharedFolder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return handed, wrapStep("open "+spec.SharedFolder, err)
		}
		handed = append(handed, folder)
	}
	return handed, nil
}

// setFailure records the failed step, its error and the kernel's error number.
func (r *Report) setFailure(err error) {
	r.Failed, r.Error = "start", err.Error()
	if failure, isStep := errors.AsType[*stepError](err); isStep {
		r.Failed, r.Error = failure.step, failure.err.Error()
	}
	if number := unix.Errno(0); errors.As(err, &number) {
		r.Errno = uint(number)
	}
}

// confine confines the process. The order of the steps matters: each needs rights that later ones drop.
// All threads of the process drop them, so that no thread is useful to commands.
func confine(spec Spec, received []int, report *Report) (watcher setidWatcher, lent []int, err error) {
	if spec.Namespaced {
		if lent, err = buildNamespaces(spec, received, report); err != nil {
			return watcher, lent, err
		}
	}
	if err := wrapStep("set limits", setLimits(spec)); err != nil {
		return watcher, lent, err
	}
	if err := wrapStep("drop capabilities", dropCapabilities()); err != nil {
		return watcher, lent, err
	}
	if err := wrapStep("set no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil { // the first filter gives it to all threads
		return watcher, lent, err
	}
	if spec.Landlock != nil {
		if err := wrapStep("landlock", applyLandlock(*spec.Landlock)); err != nil {
			return watcher, lent, err
		}
	}
	for _, filter := range spec.Filters.All {
		if err := wrapStep("seccomp", loadIntoAllThreads(filter)); err != nil {
			return watcher, lent, err
		}
	}
	watcher, err = installSetidFilter(spec.Filters)
	return watcher, lent, wrapStep("seccomp", err)
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
