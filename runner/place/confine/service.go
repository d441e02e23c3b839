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
	resolvedService
	boxes     *Sandboxes
	scratch   string // of the commands that use it
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
	stopping chan struct{} // closed before a regular end
	watch    sync.WaitGroup
}

// serviceData is a service's own folder in its /tmp.
const serviceData = "service"

// open opens a service's sandbox with an empty data folder.
func (svc *service) open(ctx context.Context, p Place) (err error) {
	if svc.isExternal() {
		return nil
	}
	s := svc.boxes
	svc.place = Place{Scratch: "service-" + svc.name + "-" + p.Scratch, Root: p.Root}
	if err := s.removeScratch(svc.place); err != nil { // of a run that was killed in it
		return err
	}
	if _, err := s.Record.MakeFolder(filepath.Join(ScratchFolder, svc.place.Scratch, "tmp", serviceData)); err != nil {
		return err
	}
	svc.box, err = s.openService(ctx, svc.options(p))
	return err
}

// start starts a service.
func (s *service) start(ctx context.Context, p Place, dir string) (err error) {
	if s.isExternal() {
		return nil
	}
	if err := s.open(ctx, p); err != nil {
		return err
	}
	s.dir, s.env = dir, s.environment(p)
	if err := s.openLog(); err != nil {
		return err
	}
	if s.process, err = s.box.Start(s.command(s.Run, s.log)); err != nil {
		return s.notReadyStop(transcript.ServiceNotReady, "it could not be started: "+err.Error())
	}
	return nil
}

func (s *Sandboxes) openService(ctx context.Context, o sandbox.Options) (*sandbox.Sandbox, error) {
	box, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, openFailure(o, err)
	}
	return box, nil
}

// options returns a service's sandbox options.
func (svc *service) options(p Place) sandbox.Options {
	s, seen := svc.boxes, p
	seen.Scratch = svc.place.Scratch
	f := s.folders(seen)
	// What setup commands changed in the user's folder is mounted by who reaches the service.
	f.Mode, f.EarlierScratch, f.Readable = grants.ReadOnly, nil, nil
	o := sandbox.Options{Network: sandbox.NetworkLoopback, At: s.level()}
	if svc.borrowed != nil {
		o.Borrowed, o.BorrowedFrom = svc.borrowed, s.overlayFolderOf(p)
		f.Overlay, f.LowerLayers, f.Git, f.RemoveHidden, f.BorrowedFolders = "", nil, "", false, nil
	}
	o.Folders, o.User = f, svc.user
	return o
}

func (s *service) environment(p Place) []string {
	own := maps.Clone(s.Env)
	if own == nil {
		own = make(map[string]string)
	}
	own["SERVICE_DATA"], own["SERVICE_PORT"] = "/tmp/"+serviceData, fmt.Sprint(s.Port)
	env := slices.DeleteFunc(s.boxes.envForTree(s.boxes.SandboxPath(p)), func(variable string) bool {
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
func (s *service) openLog() (err error) {
	s.boxes.logNames.Lock()
	defer s.boxes.logNames.Unlock()
	for n := 1; s.logName == "" || s.boxes.Record.Has(s.logName); n++ {
		s.logName = record.LogName("service", n, s.name)
	}
	if s.logFile, err = s.boxes.Record.Create(s.logName); err != nil {
		return fmt.Errorf("make log of the service %s: %w", s.name, err)
	}
	s.log = record.NewLogWriter(s.logFile, record.ServiceLog, s.boxes.Record.Redact)
	fmt.Fprintf(s.log, "agent-ci: %s for %s\n", s.name, s.scratch)
	return nil
}

func (s *service) command(run string, output io.Writer) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-e", "-c", run}, Dir: s.dir, Env: s.env, Output: output}
}

// recordState records a service's state, and its exit if it has ended.
func (s *service) recordState(state, why string, ended bool) error {
	event := transcript.Service{
		Name: s.name, By: s.scratch, State: state, Port: s.Port, Why: why, Seconds: time.Since(s.began).Seconds(), Log: s.logName,
	}
	if s.isExternal() {
		event.At = s.addresses[0].String()
	}
	if ended {
		code := s.exitCode()
		event.ExitCode = &code
	}
	return s.boxes.Record.Append(transcript.TypeService, event)
}

// ended is closed at the exit of a service that is run; nil for an existing one.
func (s *service) ended() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

func (s *service) hasEnded() bool {
	select {
	case <-s.ended():
		return true
	default:
		return false
	}
}

func (s *service) exitCode() int {
	status, _ := s.process.Wait()
	return status.ExitCode
}

// watchEnd reports an early exit. New connections are refused from then on.
func (s *service) watchEnd() {
	select {
	case <-s.stopping:
		return
	case <-s.process.Done():
	}
	s.forwarder.Refuse()
	why := fmt.Sprintf("it ended with exit status %d while it was in use", s.exitCode())
	if lines := s.lastLines(); lines != "" {
		why += "; its last lines: " + lines
	}
	_ = s.recordState(transcript.ServiceEnded, why, true) // a log that fails is told at the end
	s.boxes.Record.Warn("service_ended", "The service %s for %s ended with exit status %d while it was in use; connections to it were refused from then on. See %s.", s.name, s.scratch, s.exitCode(), s.logName)
}

// close ends the service.
func (s *service) close() (err error) {
	close(s.stopping)
	s.watch.Wait()
	if s.forwarder != nil {
		s.forwarder.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.box != nil {
		err = s.box.Close()
	}
	if s.borrowed != nil {
		err = errors.Join(err, s.borrowed.Close())
	}
	if s.process != nil {
		_, _ = s.process.Wait()
	}
	if s.logFile != nil {
		s.log.Flush()
		err = errors.Join(err, s.logFile.Close())
	}
	if s.place.Scratch != "" {
		err = errors.Join(err, s.boxes.removeScratch(s.place))
	}
	return err
}

// removeScratch removes a service's private files; its root belongs to its commands.
func (s *Sandboxes) removeScratch(p Place) error { return sandbox.RemoveScratch(s.scratch(p)) }
