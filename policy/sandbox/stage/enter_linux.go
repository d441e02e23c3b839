package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The two halves of a start.
const (
	Build = "build"
	serve = "serve"
)

// enter does one half and ends the process.
func enter(half string) {
	runtime.LockOSThread() // rights are a thread's, and so is what execve keeps of them
	var err error
	switch half {
	case Build:
		err = build()
	case serve:
		err = serveCommands(&conn{fd: ControlFD})
	default:
		err = fmt.Errorf("there is no stage %q", half)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		os.Exit(126)
	}
	os.Exit(0)
}

// failure is a step of the building that failed.
type failure struct {
	step string
	err  error
}

func (f *failure) Error() string { return f.step + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func at(step string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{step, err}
}

// build confines the thread as the spec says and becomes the supervisor.
func build() error {
	if err := unix.CloseRange(ControlFD+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	c := &conn{fd: ControlFD}
	body, _, err := c.receive()
	if err != nil {
		return err
	}
	var s Spec
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	report, listener := Report{}, -1
	err = confine(s, &report)
	if err == nil && s.ProxyPort != 0 { // by the rights that commands have
		listener, err = listen(s.ProxyPort)
		err = at("listen for the proxy", err)
	}
	if err != nil {
		var f *failure
		var errno unix.Errno
		report.Failed, report.Error = "start", err.Error()
		if errors.As(err, &f) {
			report.Failed, report.Error = f.step, f.err.Error()
		}
		if errors.As(err, &errno) {
			report.Errno = int(errno)
		}
		return errors.Join(err, c.send(report))
	}
	if err := c.sendWith(report, listener); err != nil {
		return err
	}
	return at("execute the supervisor", unix.Exec("/proc/self/exe", []string{Name, serve}, []string{}))
}

// confine takes the steps in the order in which each still has the rights that
// it needs.
func confine(s Spec, report *Report) error {
	if s.Namespaced {
		if err := buildNamespaces(s, report); err != nil {
			return err
		}
	}
	if err := at("set limits", limit(s)); err != nil {
		return err
	}
	if err := at("drop capabilities", dropCapabilities()); err != nil {
		return err
	}
	if err := at("set no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return err
	}
	if s.Landlock != nil {
		if err := at("landlock", restrict(*s.Landlock)); err != nil {
			return err
		}
	}
	for _, filter := range s.Filters {
		if err := at("seccomp", install(filter)); err != nil {
			return err
		}
	}
	return nil
}
