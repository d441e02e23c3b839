package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/forward"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// service is a running or existing service of a sandbox.
type service struct {
	settledService
	boxes     *Sandboxes
	by        string // the scratch folder of who reaches it
	listener  net.Listener
	began     time.Time
	forwarder *forward.Forwarder // nil until it is ready

	// Only for a service started here:
	borrowed *os.File // the workspace as the commands see it, where that is in an overlay
	place    Place
	box      *sandbox.Sandbox
	dir      string
	env      []string
	process  *sandbox.Process
	logFile  *os.File
	logName  string
	log      *record.LogWriter
	over     chan struct{} // closed when it may end
	watch    sync.WaitGroup
}

// serviceData is a service's own folder in its /tmp.
const serviceData = "service"

// open opens a service's sandbox with an empty data folder.
func (one *service) open(ctx context.Context, p Place) (err error) {
	if one.runsAlready() {
		return nil
	}
	s := one.boxes
	one.place = Place{Scratch: "service-" + one.name + "-" + p.Scratch, Root: p.Root}
	if err := s.removeScratch(one.place); err != nil { // of a run that was killed in it
		return err
	}
	if _, err := s.Record.MakeFolder(filepath.Join(ScratchFolder, one.place.Scratch, "tmp", serviceData)); err != nil {
		return err
	}
	one.box, err = s.openService(ctx, one.options(p))
	return err
}

// start starts a service.
func (one *service) start(ctx context.Context, p Place, dir string) (err error) {
	if one.runsAlready() {
		return nil
	}
	if err := one.open(ctx, p); err != nil {
		return err
	}
	one.dir, one.env = dir, one.environment(p)
	if err := one.openLog(); err != nil {
		return err
	}
	if one.process, err = one.box.Start(one.command(one.Run, one.log)); err != nil {
		return one.notReady(transcript.ServiceNotReady, "it could not be started: "+err.Error())
	}
	return nil
}

func (s *Sandboxes) openService(ctx context.Context, o sandbox.Options) (*sandbox.Sandbox, error) {
	box, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, failure(o, err)
	}
	return box, nil
}

// options returns a service's sandbox options.
func (one *service) options(p Place) sandbox.Options {
	s, seen := one.boxes, p
	seen.Scratch = one.place.Scratch
	f := s.folders(seen)
	// What setup commands changed in the user's folder is mounted by who reaches the service.
	f.Mode, f.Below, f.Readable = grants.ReadOnly, nil, nil
	o := sandbox.Options{Network: sandbox.NetworkLoopback, At: s.level()}
	if one.borrowed != nil {
		o.Borrowed, o.BorrowedFrom = one.borrowed, s.overlay(p)
		f.Overlay, f.Frozen, f.Git, f.Absent, f.Lent = "", nil, "", false, nil
	}
	o.Folders, o.User = f, one.as
	return o
}

func (one *service) environment(p Place) []string {
	own := maps.Clone(one.Env)
	if own == nil {
		own = make(map[string]string)
	}
	own["SERVICE_DATA"], own["SERVICE_PORT"] = "/tmp/"+serviceData, fmt.Sprint(one.Port)
	env := slices.DeleteFunc(one.boxes.envAt(one.boxes.Seen(p)), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, is := own[name]
		return is
	})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return env
}

// openLog makes the log of a service and its commands.
func (one *service) openLog() (err error) {
	one.boxes.naming.Lock()
	defer one.boxes.naming.Unlock()
	for n := 1; one.logName == "" || one.boxes.Record.Has(one.logName); n++ {
		one.logName = record.LogName("service", n, one.name)
	}
	if one.logFile, err = one.boxes.Record.Create(one.logName); err != nil {
		return fmt.Errorf("make log of the service %s: %w", one.name, err)
	}
	one.log = record.NewLogWriter(one.logFile, record.ServiceLog, one.boxes.Record.Redact)
	fmt.Fprintf(one.log, "agent-ci: %s for %s\n", one.name, one.by)
	return nil
}

func (one *service) command(run string, output io.Writer) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-e", "-c", run}, Dir: one.dir, Env: one.env, Output: output}
}

// tell records a service's state, and its exit if it has ended.
func (one *service) tell(state, why string, ended bool) error {
	event := transcript.Service{
		Name: one.name, By: one.by, State: state, Port: one.Port, Why: why, Seconds: time.Since(one.began).Seconds(), Log: one.logName,
	}
	if one.runsAlready() {
		event.At = one.at[0].String()
	}
	if ended {
		code := one.exitCode()
		event.ExitCode = &code
	}
	return one.boxes.Record.Append(transcript.TypeService, event)
}

// ended is closed at the exit of a service that is run; nil for an existing one.
func (one *service) ended() <-chan struct{} {
	if one.process == nil {
		return nil
	}
	return one.process.Done()
}

func (one *service) hasEnded() bool {
	select {
	case <-one.ended():
		return true
	default:
		return false
	}
}

func (one *service) exitCode() int {
	status, _ := one.process.Wait()
	return status.ExitCode
}

// watchEnd reports an early exit. New connections are refused from then on.
func (one *service) watchEnd() {
	select {
	case <-one.over:
		return
	case <-one.process.Done():
	}
	one.forwarder.Refuse()
	why := fmt.Sprintf("it ended with exit status %d while it was in use", one.exitCode())
	if lines := one.lastLines(); lines != "" {
		why += "; its last lines: " + lines
	}
	_ = one.tell(transcript.ServiceEnded, why, true) // a log that fails is told at the end
	one.boxes.Record.Warn("service_ended", "The service %s for %s ended with exit status %d while it was in use; connections to it were refused from then on. See %s.", one.name, one.by, one.exitCode(), one.logName)
}

// close ends the service.
func (one *service) close() (err error) {
	close(one.over)
	one.watch.Wait()
	if one.forwarder != nil {
		one.forwarder.Close()
	}
	if one.listener != nil {
		_ = one.listener.Close()
	}
	if one.box != nil {
		err = one.box.Close()
	}
	if one.borrowed != nil {
		err = errors.Join(err, one.borrowed.Close())
	}
	if one.process != nil {
		_, _ = one.process.Wait()
	}
	if one.logFile != nil {
		one.log.Flush()
		err = errors.Join(err, one.logFile.Close())
	}
	if one.place.Scratch != "" {
		err = errors.Join(err, one.boxes.removeScratch(one.place))
	}
	return err
}

// removeScratch removes a service's private files; its root belongs to its commands.
func (s *Sandboxes) removeScratch(p Place) error { return sandbox.RemoveScratch(s.scratch(p)) }
