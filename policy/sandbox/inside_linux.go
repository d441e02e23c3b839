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

// tooSlowHint is the end of the error for a supervisor killed after startWait.
const tooSlowHint = "; this machine may be too busy, or a command stopped it"

// errGone is the error of commands when the supervisor has exited.
var errGone = errors.New("the sandbox's supervisor is gone")

// supervisorConn is the outer end of a supervisor.
type supervisorConn struct {
	supervisor       *supervisor
	socket           *net.UnixConn
	supervisorExited chan struct{}  // closed when the supervisor has exited
	noProcesses      chan struct{}  // closed when the supervisor reports that no process lives
	pauseReplies     chan error     // the supervisor's answer to a request to stop all commands
	listeners        []net.Listener // at Spec.Ports
	sharedFolder     *os.File       // the folder Spec.SharedFolder; nil without one
	lentMounts       []*os.File     // mounts of sharedFolder: Spec.LendToRead and then Spec.LendToWrite
	startWait        time.Duration

	socketLock    sync.Mutex       // held during a request for a socket
	socketReplies chan socketReply // the supervisor's answers

	sendLock sync.Mutex

	mu       sync.Mutex
	lastID   uint64                      // id of the last started child
	children map[uint64]*supervisedChild // children that have not exited; nil once the supervisor has
}

// supervisedChild is a command started by the supervisor.
type supervisedChild struct {
	conn    *supervisorConn
	command Command
	id      uint64
	started chan error
	exited  chan struct{}
	status  syscall.WaitStatus
	lost    bool // the supervisor exited before the command
}

// startSupervisorWithSocket starts a process with attributes. The process waits for a spec.
func startSupervisorWithSocket(starter *proc.Starter, attributes *syscall.SysProcAttr) (*supervisorConn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	conn := &supervisorConn{socket: ours, supervisorExited: make(chan struct{}), noProcesses: make(chan struct{}), pauseReplies: make(chan error, 1), socketReplies: make(chan socketReply, 1), startWait: startWait, children: make(map[uint64]*supervisedChild)}
	err = starter.Start(func() (err error) {
		conn.supervisor, err = startSupervisor(theirs, attributes)
		return err
	})
	if err != nil {
		ours.Close()
		return nil, &setupError{step: "start in namespaces of its own", why: err.Error()}
	}
	return conn, nil
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
func (conn *supervisorConn) sendSpec(spec stage.Spec, files ...*os.File) (report stage.Report, err error) {
	_ = conn.socket.SetDeadline(time.Now().Add(conn.startWait))
	defer conn.socket.SetDeadline(time.Time{})
	if err := conn.send(spec, files...); err != nil {
		return report, &setupError{step: "hand over what to confine", why: conn.failureReason(err)}
	}
	received, err := conn.receiveFiles(&report)
	if err == nil {
		err = conn.storeFiles(received, spec)
	}
	if err != nil {
		return report, &setupError{step: "confine", why: conn.failureReason(err)}
	}
	if report.Failed != "" {
		refused := &setupError{step: report.Failed, why: report.Error}
		if report.Errno != 0 {
			refused.cause = syscall.Errno(report.Errno)
		}
		return report, refused
	}
	var ready stage.Event
	if err := conn.receiveRest(make([]byte, stage.HeaderSize), 0, &ready); err != nil {
		return report, &setupError{step: "start the supervisor", why: conn.failureReason(err)}
	}
	return report, nil
}

// failureReason ends the connection after err. It returns the process's last output, or else the text of
// err, and kills a process that does not answer.
func (conn *supervisorConn) failureReason(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		conn.supervisor.kill()
		err = fmt.Errorf("it did not answer within %s%s", conn.startWait, tooSlowHint)
	}
	conn.socket.Close()
	return cmp.Or(strings.TrimSpace(conn.supervisor.readError()), err.Error())
}

// abandon kills the process after a failed setup and closes its files.
func (conn *supervisorConn) abandon() {
	for _, l := range conn.listeners {
		_ = l.Close()
	}
	closeAll(conn.lentMounts)
	conn.closeSharedFolder()
	conn.socket.Close()
	conn.supervisor.kill()
	conn.supervisor.wait()
}

// send sends a message with descriptors.
func (conn *supervisorConn) send(message any, descriptors ...*os.File) error {
	frame, err := stage.Frame(message)
	if err != nil {
		return err
	}
	conn.sendLock.Lock()
	defer conn.sendLock.Unlock()
	written := 0
	var writeErr error
	err = withNumbers(descriptors, nil, func(fds []int) {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		written, _, writeErr = conn.socket.WriteMsgUnix(frame, rights, nil)
	})
	if err := errors.Join(err, writeErr); err != nil {
		return err
	}
	if written == len(frame) {
		return nil
	}
	_, err = conn.socket.Write(frame[written:])
	return err
}

// withNumbers calls use with numbers and the descriptor numbers of files. The files stay open meanwhile:
// each recursion holds one. withNumbers makes them blocking, as programs expect.
func withNumbers(files []*os.File, numbers []int, use func([]int)) error {
	if len(files) == 0 {
		use(numbers)
		return nil
	}
	conn, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var useErr error
	err = conn.Control(func(fd uintptr) {
		useErr = unix.SetNonblock(int(fd), false)
		isMount := errors.Is(useErr, unix.EBADF) // it cannot be read anyway
		if useErr == nil || isMount {
			useErr = withNumbers(files[1:], append(numbers, int(fd)), use)
		}
	})
	return errors.Join(err, useErr)
}

// receiveRest receives the rest of a message into to. The first n bytes of its header are already read.
func (conn *supervisorConn) receiveRest(header []byte, n int, to any) error {
	if _, err := io.ReadFull(conn.socket, header[n:]); err != nil {
		return err
	}
	size := stage.BodySize(header)
	if size > maxEvent {
		return errors.New("what the supervisor says is too long")
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn.socket, body); err != nil {
		return err
	}
	return json.Unmarshal(body, to)
}

// receiveFiles receives a message into to, and returns the files sent with it.
func (conn *supervisorConn) receiveFiles(to any) (files []*os.File, err error) {
	header, oob := make([]byte, stage.HeaderSize), make([]byte, unix.CmsgSpace(4*stage.MaxReported))
	n, size, _, _, err := conn.socket.ReadMsgUnix(header, oob)
	if err != nil {
		return nil, err
	}
	descriptors, err := stage.Descriptors(oob[:size])
	for _, fd := range descriptors {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "of a sandbox"))
	}
	return files, errors.Join(err, conn.receiveRest(header, n, to))
}

// storeFiles stores the files of a report in the order of the spec: listeners, the shared folder and
// its mounts.
func (conn *supervisorConn) storeFiles(received []*os.File, spec stage.Spec) (err error) {
	ports := min(len(spec.Ports), len(received))
	for _, socket := range received[:ports] {
		listener, listenErr := net.FileListener(socket)
		if listenErr == nil {
			conn.listeners = append(conn.listeners, listener)
		}
		err = errors.Join(err, listenErr)
		_ = socket.Close() // the listener has its own descriptor
	}
	received = received[ports:]
	if spec.SharedFolder != "" && len(received) > 0 {
		conn.sharedFolder, received = received[0], received[1:]
	}
	conn.lentMounts = received
	return err
}

// sharedPath returns a path of the shared folder for this process, or "" without one.
func (conn *supervisorConn) sharedPath() string {
	if conn.sharedFolder == nil {
		return ""
	}
	return fmt.Sprintf("/proc/self/fd/%d", conn.sharedFolder.Fd())
}

// closeSharedFolder closes the shared folder. An open folder keeps its mounts alive.
func (conn *supervisorConn) closeSharedFolder() {
	if conn.sharedFolder != nil {
		_ = conn.sharedFolder.Close()
	}
}

// listen handles the supervisor's events until the supervisor exits.
func (conn *supervisorConn) listen() {
	defer close(conn.supervisorExited)
	for {
		var event stage.Event
		files, err := conn.receiveFiles(&event)
		if err != nil {
			closeAll(files)
			conn.failWaiters()
			return
		}
		if event.Socket {
			conn.passSocket(event, files)
			continue
		}
		closeAll(files)
		if event.Empty { // the last event
			close(conn.noProcesses)
			_, _ = io.Copy(io.Discard, conn.socket)
			conn.failWaiters()
			return
		}
		conn.handleEvent(event)
	}
}

// handleEvent passes an event to the command or caller that waits for it.
func (conn *supervisorConn) handleEvent(event stage.Event) {
	if event.Paused {
		conn.pauseReplies <- errorOf(event)
		return
	}
	conn.mu.Lock()
	c := conn.children[event.ID]
	if event.Exited || event.Error != "" {
		delete(conn.children, event.ID)
	}
	conn.mu.Unlock()
	switch {
	case c == nil: // its start has failed meanwhile
	case event.Exited:
		c.status = syscall.WaitStatus(event.Status)
		close(c.exited)
	case event.Missing:
		c.started <- missingProgram(event.Error)
	case event.Error != "":
		c.started <- errors.New(event.Error)
	default:
		c.started <- nil
	}
}

// failWaiters ends every wait for a supervisor that has exited.
func (conn *supervisorConn) failWaiters() {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	for _, c := range conn.children {
		c.lost = true
		select {
		case c.started <- errGone:
		default:
		}
		close(c.exited)
	}
	conn.children = nil
}

// killEverything makes the supervisor kill everything it started. It reports whether nothing lives any more.
func (conn *supervisorConn) killEverything() bool {
	_ = conn.socket.CloseWrite() // no more requests come
	select {
	case <-conn.noProcesses:
	case <-conn.supervisorExited:
	case <-time.After(closeWait):
	}
	select {
	case <-conn.noProcesses: // checked again, because both channels may be closed
		return true
	default:
		return false
	}
}

// close ends the supervisor and everything it started. It kills the supervisor after closeWait.
func (conn *supervisorConn) close() {
	_ = conn.socket.CloseWrite()
	timer := time.AfterFunc(closeWait, conn.supervisor.kill)
	conn.supervisor.wait()
	timer.Stop()
	conn.socket.Close()
	<-conn.supervisorExited
	conn.closeSharedFolder()
}

// giveUp kills a supervisor that does not answer. A command in the middle of its start may keep the
// socket open, so giveUp also ends reading from it.
func (conn *supervisorConn) giveUp() {
	conn.supervisor.kill()
	_ = conn.socket.SetDeadline(time.Now())
}

func (conn *supervisorConn) child(c Command) *supervisedChild {
	return &supervisedChild{conn: conn, command: c, started: make(chan error, 1), exited: make(chan struct{})}
}

// start asks the supervisor to start the command, and waits up to startWait for the answer.
func (child *supervisedChild) start(streams []*os.File, terminal bool) error {
	if err := child.conn.registerChild(child); err != nil {
		return err
	}
	request := stage.Start{ID: child.id, Argv: toBytes(child.command.Argv), Dir: child.command.Dir, Env: toBytes(child.command.Env), Terminal: terminal}
	if err := child.conn.send(stage.Request{Start: &request}, streams...); err != nil {
		child.conn.unregisterChild(child)
		return fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case err := <-child.started:
		return err
	case <-time.After(child.conn.startWait):
		child.conn.giveUp()
		return fmt.Errorf("%w: it was ended because it did not start a command within %s%s", errGone, child.conn.startWait, tooSlowHint)
	}
}

// registerChild registers c under a new id, so that handleEvent finds it. It returns errGone after the
// supervisor has exited.
func (conn *supervisorConn) registerChild(c *supervisedChild) error {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.children == nil {
		return errGone
	}
	conn.lastID++
	c.id = conn.lastID
	conn.children[c.id] = c
	return nil
}

func (conn *supervisorConn) unregisterChild(c *supervisedChild) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	delete(conn.children, c.id)
}

func toBytes(texts []string) [][]byte {
	all := make([][]byte, len(texts))
	for i, t := range texts {
		all[i] = []byte(t)
	}
	return all
}

func (child *supervisedChild) awaitExit() { <-child.exited }

func (child *supervisedChild) signal(sig syscall.Signal) {
	_ = child.conn.send(stage.Request{Signal: &stage.Signal{ID: child.id, Number: int(sig)}}) // it only fails if the supervisor, and so the command, is dead
}

func (child *supervisedChild) reap() (Status, error) {
	_ = child.conn.send(stage.Request{End: child.id})
	if child.lost {
		return Status{ExitCode: -1}, errGone
	}
	return statusOf(child.status), nil
}
