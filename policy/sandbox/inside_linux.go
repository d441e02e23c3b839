package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// maxEvent bounds a message of the supervisor, in bytes.
const maxEvent = 1 << 20

// startWait bounds the time to confine a supervisor and to start a command. Commands can stop a new
// process between fork and execve (SIGSTOP), which blocks the supervisor. Minutes suffice for a
// busy machine.
const startWait = 3 * time.Minute

// tooSlow is the end of the error for a supervisor killed after startWait.
const tooSlow = "; this machine may be too busy, or a command stopped it"

// errGone is the error of commands when the supervisor has exited.
var errGone = errors.New("the sandbox's supervisor is gone")

// supervisorConn is the outer end of a supervisor.
type supervisorConn struct {
	supervisor     *supervisor
	socket         *net.UnixConn
	supervisorGone chan struct{}  // closed when the supervisor has exited
	noProcesses    chan struct{}  // closed when the supervisor reports that no process lives
	paused         chan error     // the supervisor's answer to a request to stop all commands
	listeners      []net.Listener // at Spec.Ports
	sharedFolder   *os.File       // the folder Spec.Shown; nil without one
	lentMounts     []*os.File     // mounts of sharedFolder: Spec.Lend and then Spec.LendToWrite
	startWait      time.Duration

	socketLock sync.Mutex       // held during a request for a socket
	sockets    chan socketReply // the supervisor's answers

	sendLock sync.Mutex

	mu       sync.Mutex
	last     uint64                      // id of the last started child
	children map[uint64]*supervisedChild // children that have not exited
	closed   bool                        // the supervisor has exited
}

// supervisedChild is a command started by the supervisor.
type supervisedChild struct {
	inside  *supervisorConn
	command Command
	id      uint64
	started chan error
	exited  chan struct{}
	status  syscall.WaitStatus
	lost    bool // the supervisor exited before the command
}

// startInside starts a process with attributes. The process waits for a spec.
func startInside(starter *proc.Starter, attributes *syscall.SysProcAttr) (*supervisorConn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	in := &supervisorConn{socket: ours, supervisorGone: make(chan struct{}), noProcesses: make(chan struct{}), paused: make(chan error, 1), sockets: make(chan socketReply, 1), startWait: startWait, children: make(map[uint64]*supervisedChild)}
	err = starter.Start(func() (err error) {
		in.supervisor, err = startSupervisor(theirs, attributes)
		return err
	})
	if err != nil {
		ours.Close()
		return nil, &setupError{step: "start in namespaces of its own", why: err.Error()}
	}
	return in, nil
}

// setupError reports a step of the confinement that failed. openConfined then tries a weaker one.
type setupError struct {
	step, why, remedy string // remedy is "" for the general one
	cause             error  // the kernel's error; nil if unknown
}

func (e *setupError) Error() string { return e.step + ": " + e.why }

// socketPair returns both ends of a control socket.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	control, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer control.Close() // the connection has its own descriptor
	conn, err := net.FileConn(control)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// sendSpec sends the spec with files, and waits until the supervisor serves. A failed step is a setupError.
func (i *supervisorConn) sendSpec(spec stage.Spec, given ...*os.File) (report stage.Report, err error) {
	_ = i.socket.SetDeadline(time.Now().Add(i.startWait))
	defer i.socket.SetDeadline(time.Time{})
	if err := i.send(spec, given...); err != nil {
		return report, &setupError{step: "hand over what to confine", why: i.explain(err)}
	}
	handed, err := i.receiveFiles(&report)
	if err == nil {
		err = i.storeFiles(handed, spec)
	}
	if err != nil {
		return report, &setupError{step: "confine", why: i.explain(err)}
	}
	if report.Failed != "" {
		refused := &setupError{step: report.Failed, why: report.Error}
		if report.Errno != 0 {
			refused.cause = syscall.Errno(report.Errno)
		}
		return report, refused
	}
	var ready stage.Event
	if err := i.receive(&ready); err != nil {
		return report, &setupError{step: "start the supervisor", why: i.explain(err)}
	}
	return report, nil
}

// explain returns the process's last output, or else the text of err. It kills a process that does not
// answer.
func (i *supervisorConn) explain(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		i.supervisor.kill()
		err = fmt.Errorf("it did not answer within %s%s", i.startWait, tooSlow)
	}
	i.socket.Close()
	return cmp.Or(strings.TrimSpace(i.supervisor.readError()), err.Error())
}

// abandon kills the process after a failed setup and closes its files.
func (i *supervisorConn) abandon() {
	for _, l := range i.listeners {
		_ = l.Close()
	}
	closeAll(i.lentMounts)
	i.closeSharedFolder()
	i.socket.Close()
	i.supervisor.kill()
	i.supervisor.wait()
}

// send sends a message with descriptors.
func (i *supervisorConn) send(message any, descriptors ...*os.File) error {
	frame, err := stage.Frame(message)
	if err != nil {
		return err
	}
	i.sendLock.Lock()
	defer i.sendLock.Unlock()
	n := 0
	failed := withNumbers(descriptors, nil, func(fds []int) {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		n, _, err = i.socket.WriteMsgUnix(frame, rights, nil)
	})
	if err := errors.Join(failed, err); err != nil || n == len(frame) {
		return err
	}
	_, err = i.socket.Write(frame[n:])
	return err
}

// withNumbers calls use with numbers and the descriptors of files, which stay valid meanwhile. It makes
// the files blocking, as programs expect.
func withNumbers(files []*os.File, numbers []int, use func([]int)) error {
	if len(files) == 0 {
		use(numbers)
		return nil
	}
	conn, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var later error
	err = conn.Control(func(fd uintptr) {
		later = unix.SetNonblock(int(fd), false)
		if errors.Is(later, unix.EBADF) { // a mount, which cannot be read anyway
			later = nil
		}
		if later == nil {
			later = withNumbers(files[1:], append(numbers, int(fd)), use)
		}
	})
	return errors.Join(err, later)
}

func (i *supervisorConn) receive(to any) error {
	return i.receiveRest(make([]byte, stage.HeaderSize), 0, to)
}

// receiveRest receives the rest of a message into to. The first n bytes of its header are already read.
func (i *supervisorConn) receiveRest(header []byte, n int, to any) error {
	if _, err := io.ReadFull(i.socket, header[n:]); err != nil {
		return err
	}
	size := stage.BodySize(header)
	if size > maxEvent {
		return errors.New("what the supervisor says is too long")
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(i.socket, body); err != nil {
		return err
	}
	return json.Unmarshal(body, to)
}

// receiveFiles receives a message into to, and returns the files sent with it.
func (i *supervisorConn) receiveFiles(to any) (files []*os.File, err error) {
	header, oob := make([]byte, stage.HeaderSize), make([]byte, unix.CmsgSpace(4*stage.MaxReported))
	n, size, _, _, err := i.socket.ReadMsgUnix(header, oob)
	if err != nil {
		return nil, err
	}
	descriptors, err := stage.Descriptors(oob[:size])
	for _, fd := range descriptors {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "of a sandbox"))
	}
	return files, errors.Join(err, i.receiveRest(header, n, to))
}

// storeFiles stores the files of a report in the order of the spec: listeners, the shared folder and
// its mounts.
func (i *supervisorConn) storeFiles(handed []*os.File, spec stage.Spec) (err error) {
	for len(i.listeners) < len(spec.Ports) && len(handed) > 0 && err == nil {
		var l net.Listener
		if l, err = net.FileListener(handed[0]); err == nil {
			i.listeners = append(i.listeners, l)
		}
		_ = handed[0].Close() // the listener has its own descriptor
		handed = handed[1:]
	}
	if spec.Shown != "" && len(handed) > 0 {
		i.sharedFolder, handed = handed[0], handed[1:]
	}
	i.lentMounts = handed
	return err
}

// path returns a path of the shared folder for this process, or "" without one.
func (i *supervisorConn) path() string {
	if i.sharedFolder == nil {
		return ""
	}
	return fmt.Sprintf("/proc/self/fd/%d", i.sharedFolder.Fd())
}

// closeSharedFolder closes the shared folder. An open folder keeps its mounts alive.
func (i *supervisorConn) closeSharedFolder() {
	if i.sharedFolder != nil {
		_ = i.sharedFolder.Close()
	}
}

// listen handles the supervisor's events until the supervisor exits.
func (i *supervisorConn) listen() {
	defer close(i.supervisorGone)
	for {
		var e stage.Event
		files, err := i.receiveFiles(&e)
		if err != nil {
			closeAll(files)
			i.failWaiters()
			return
		}
		if e.Socket {
			i.takeSocket(e, files)
			continue
		}
		closeAll(files)
		if e.Empty { // the last event
			close(i.noProcesses)
			_, _ = io.Copy(io.Discard, i.socket)
			i.failWaiters()
			return
		}
		i.handleEvent(e)
	}
}

// handleEvent passes an event to the command or caller that waits for it.
func (i *supervisorConn) handleEvent(e stage.Event) {
	if e.Paused {
		i.paused <- errorOf(e)
		return
	}
	i.mu.Lock()
	c := i.children[e.ID]
	if e.Exited || e.Error != "" {
		delete(i.children, e.ID)
	}
	i.mu.Unlock()
	switch {
	case c == nil:
	case e.Exited:
		c.status = syscall.WaitStatus(e.Status)
		close(c.exited)
	case e.Missing:
		c.started <- missingProgram(e.Error)
	case e.Error != "":
		c.started <- errors.New(e.Error)
	default:
		c.started <- nil
	}
}

// failWaiters ends every wait for a supervisor that has exited.
func (i *supervisorConn) failWaiters() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for id, c := range i.children {
		delete(i.children, id)
		c.lost = true
		select {
		case c.started <- errGone:
		default:
		}
		close(c.exited)
	}
}

// endAll makes the supervisor kill everything it started. It reports whether nothing lives any more.
func (i *supervisorConn) endAll() bool {
	_ = i.socket.CloseWrite() // no more requests come
	patience := time.NewTimer(closeWait)
	defer patience.Stop()
	select {
	case <-i.noProcesses:
	case <-i.supervisorGone:
	case <-patience.C:
	}
	select {
	case <-i.noProcesses: // checked again, because both channels may be closed
		return true
	default:
		return false
	}
}

// close ends the supervisor and everything it started. It kills the supervisor after closeWait.
func (i *supervisorConn) close() {
	_ = i.socket.CloseWrite()
	patience := time.AfterFunc(closeWait, i.supervisor.kill)
	i.supervisor.wait()
	patience.Stop()
	i.socket.Close()
	<-i.supervisorGone
	i.closeSharedFolder()
}

// giveUp kills a supervisor that does not answer. A command in the middle of its start may keep the
// socket open, so giveUp also ends reading from it.
func (i *supervisorConn) giveUp() {
	i.supervisor.kill()
	_ = i.socket.SetDeadline(time.Now())
}

func (i *supervisorConn) child(c Command) *supervisedChild {
	return &supervisedChild{inside: i, command: c, started: make(chan error, 1), exited: make(chan struct{})}
}

// start asks the supervisor to start the command, and waits up to startWait for the answer.
func (c *supervisedChild) start(streams []*os.File, terminal bool) error {
	if err := c.inside.addChild(c); err != nil {
		return err
	}
	request := stage.Start{ID: c.id, Argv: raw(c.command.Argv), Dir: c.command.Dir, Env: raw(c.command.Env), Terminal: terminal}
	if err := c.inside.send(stage.Request{Start: &request}, streams...); err != nil {
		c.inside.removeChild(c)
		return fmt.Errorf("%w: %w", errGone, err)
	}
	patience := time.NewTimer(c.inside.startWait)
	defer patience.Stop()
	select {
	case err := <-c.started:
		return err
	case <-patience.C:
		c.inside.giveUp()
		return fmt.Errorf("%w: it was ended because it did not start a command within %s%s", errGone, c.inside.startWait, tooSlow)
	}
}

// addChild registers c under a new id, so that handleEvent finds it. It returns errGone after the
// supervisor has exited.
func (i *supervisorConn) addChild(c *supervisedChild) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return errGone
	}
	i.last++
	c.id = i.last
	i.children[c.id] = c
	return nil
}

func (i *supervisorConn) removeChild(c *supervisedChild) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.children, c.id)
}

func raw(texts []string) [][]byte {
	all := make([][]byte, len(texts))
	for i, t := range texts {
		all[i] = []byte(t)
	}
	return all
}

func (c *supervisedChild) awaitExit() { <-c.exited }

func (c *supervisedChild) signal(sig syscall.Signal) {
	_ = c.inside.send(stage.Request{Signal: &stage.Signal{ID: c.id, Number: int(sig)}}) // it only fails if the supervisor, and so the command, is dead
}

func (c *supervisedChild) reap() (Status, error) {
	_ = c.inside.send(stage.Request{End: c.id})
	if c.lost {
		return Status{ExitCode: -1}, errGone
	}
	return statusOf(c.status), nil
}
